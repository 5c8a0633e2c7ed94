package tracer

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind"
)

// space is what the programs know of one process's code: its executable
// mappings, each with the unwind table of its file. It is not safe for
// concurrent use.
type space struct {
	target *target
	tables *tables
	outer  *outer        // slot → mappings
	inner  *ebpf.MapSpec // of a map of mappings
	slot   uint32
	code   []placed // by address
	log    func(format string, args ...any)
	warn   func(format string, args ...any)
}

// placed is a mapping with what unwinds its code.
type placed struct {
	mapping
	table *table // nil until it was looked for
}

// noTable stands for the table of code that is in no file, or in one that cannot
// have a table: it is not looked for again.
var noTable = &table{}

const (
	maxMappings = 1<<17 - 1 // MAPPING_STEPS in bpf/tables.h
	maxRows     = 1 << 23   // ROW_STEPS
)

// update makes all, the executable mappings of the process, known to the
// programs and says whether that is another set than before. What overlaps
// fresh was mapped anew: it may be another file at the same place that took the
// former one's inode number.
func (s *space) update(all, fresh []mapping) (changed bool, err error) {
	code := make([]placed, 0, len(all))
	for _, m := range all {
		if m.path != trampolines && len(code) < maxMappings {
			code = append(code, placed{mapping: m})
		}
	}
	slices.SortFunc(code, func(a, b placed) int { return cmp.Compare(a.start, b.start) })
	isFresh := func(p placed) bool { return slices.ContainsFunc(fresh, p.overlaps) }
	if slices.EqualFunc(code, s.code, func(a, b placed) bool { return a.same(b.mapping) }) &&
		!slices.ContainsFunc(code, isFresh) {
		return false, nil
	}
	s.inherit(code, isFresh)
	s.load(code)
	if err = s.tables.install(); err == nil {
		err = s.install(code)
	}
	if err != nil {
		s.release(code)
		return false, err
	}
	s.release(s.code)
	s.code = code
	return true, nil
}

// release gives up the tables of code.
func (s *space) release(code []placed) {
	for i := range code {
		if t := code[i].table; t != nil && t != noTable {
			s.tables.release(t)
		}
	}
}

// inherit gives mappings that were there before, and are not fresh, the table
// they had.
func (s *space) inherit(code []placed, isFresh func(placed) bool) {
	before := make(map[moduleKey]*table, len(s.code))
	for i := range s.code {
		before[s.code[i].key()] = s.code[i].table
	}
	for i := range code {
		if t := before[code[i].key()]; t != nil && !isFresh(code[i]) {
			code[i].table = t
			if t != noTable {
				t.users++
			}
		}
	}
}

// build is a file whose table is being made.
type build struct {
	key   tableKey
	file  *symbol.File
	table *unwind.Table
	err   error
	users []*placed
}

// load finds or makes the tables of the mappings that have none yet.
func (s *space) load(code []placed) {
	var builds []*build
	for i := range code {
		p := &code[i]
		if p.table != nil {
			continue
		}
		key, f := s.open(p.mapping)
		if f == nil {
			p.table = noTable
			continue
		}
		if p.table = s.tables.find(key); p.table != nil {
			f.Close()
			continue
		}
		if j := slices.IndexFunc(builds, func(b *build) bool { return b.key == key }); j >= 0 {
			f.Close()
			builds[j].users = append(builds[j].users, p)
			continue
		}
		builds = append(builds, &build{key: key, file: f, users: []*placed{p}})
	}
	for b := range made(builds) {
		s.keep(b)
	}
}

// made makes the tables of builds, on all processors, and yields each build
// when it is done.
func made(builds []*build) <-chan *build {
	work, done := make(chan *build), make(chan *build)
	var workers sync.WaitGroup
	for range min(len(builds), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for b := range work {
				b.table, b.err = unwind.Build(b.file)
				done <- b
			}
		})
	}
	workers.Go(func() {
		for _, b := range builds {
			work <- b
		}
		close(work)
	})
	go func() {
		workers.Wait()
		close(done)
	}()
	return done
}

// keep takes over a table that was made. A file whose table cannot be read or
// kept has none: stacks through its code say so.
func (s *space) keep(b *build) {
	segments := b.file.Segments()
	b.file.Close()
	path := b.users[0].path
	if b.table != nil && len(b.table.Rows) > maxRows {
		b.table, b.err = nil, fmt.Errorf("%d rows are too many", len(b.table.Rows))
	}
	t, err := s.tables.add(b.key, b.table, segments)
	b.table = nil // it may be large, and others are still being made
	t.users = len(b.users)
	for _, p := range b.users {
		p.table = t
	}
	if err = errors.Join(b.err, err); err != nil && !errors.Is(err, unwind.ErrNoFrames) {
		s.warn("no unwind table of %s: %v", path, err)
		return
	}
	if n := s.tables.full; n > 0 {
		s.warn("no room for %d more unwind rules: stacks end with no-rule in code that needs them", n)
		s.tables.full = 0
	}
	s.log("unwind table of %s: %d rows", path, t.rows)
}

// open opens the file of a mapping. It returns nil if there is none, or none
// that could have tables.
func (s *space) open(m mapping) (tableKey, *symbol.File) {
	f, err := s.target.openCode(m)
	if err != nil {
		s.log("no unwind table of %s: %v", m.path, err)
	}
	if err != nil || f == nil {
		return tableKey{}, nil
	}
	return keyOf(m, f), f
}

// install hands the mappings to the programs, all at once.
func (s *space) install(code []placed) error {
	spec := s.inner.Copy()
	spec.Name, spec.MaxEntries = "space", uint32(len(code)+1)
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return fmt.Errorf("make list of mappings: %w", shortage(err))
	}
	keys, values := []uint32{0}, []probeMapping{{Rows: uint32(len(code))}}
	for i, p := range code {
		keys = append(keys, uint32(i+1))
		values = append(values, p.bpf())
	}
	if _, err := m.BatchUpdate(keys, values, nil); err != nil {
		return errors.Join(fmt.Errorf("fill list of mappings: %w", err), m.Close())
	}
	if err := s.outer.install(map[uint32]*ebpf.Map{s.slot: m}); err != nil {
		return fmt.Errorf("install list of mappings: %w", err)
	}
	return nil
}

// bpf returns the mapping as the programs see it.
func (p *placed) bpf() probeMapping {
	m := probeMapping{Start: p.start, End: p.end}
	if t := p.table; t != nil && t.rows > 0 {
		m.Table, m.Rows = t.slot, t.rows
		m.Origin = p.bias(t.segments) + t.base
	}
	return m
}

// mappings returns what is installed.
func (s *space) mappings() []mapping {
	out := make([]mapping, len(s.code))
	for i := range s.code {
		out[i] = s.code[i].mapping
	}
	return out
}
