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
	outer  *ebpf.Map     // slot → mappings
	inner  *ebpf.MapSpec // of a map of mappings
	slot   uint32
	code   []placed // by address
	log    func(format string, args ...any)
}

// placed is a mapping with what unwinds its code.
type placed struct {
	mapping
	table *table // nil for code that is in no file
}

const (
	maxMappings = 1 << 17 // MAPPING_STEPS in bpf/tables.h
	maxRows     = 1 << 23 // ROW_STEPS
)

// update makes all, the executable mappings of the process, known to the
// programs and says whether that is another set than before.
func (s *space) update(all []mapping) (changed bool, err error) {
	code := make([]placed, 0, len(all))
	for _, m := range all {
		// Return addresses in there are not true ones (bpf/trampoline.h).
		if m.path != "[uprobes]" && len(code) < maxMappings {
			code = append(code, placed{mapping: m})
		}
	}
	slices.SortFunc(code, func(a, b placed) int { return cmp.Compare(a.start, b.start) })
	if slices.EqualFunc(code, s.code, func(a, b placed) bool { return a.same(b.mapping) }) {
		return false, nil
	}
	s.inherit(code)
	if err := s.load(code); err != nil {
		return false, err
	}
	if err := s.install(code); err != nil {
		return false, err
	}
	for i := range s.code {
		if t := s.code[i].table; t != nil {
			err = errors.Join(err, s.tables.release(t))
		}
	}
	s.code = code
	return true, err
}

// inherit gives mappings that were there before the table they had.
func (s *space) inherit(code []placed) {
	for i := range code {
		if j := slices.IndexFunc(s.code, func(old placed) bool { return old.same(code[i].mapping) }); j >= 0 {
			if code[i].table = s.code[j].table; code[i].table != nil {
				code[i].table.users++
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
func (s *space) load(code []placed) error {
	var builds []*build
	for i := range code {
		p := &code[i]
		if p.table != nil {
			continue
		}
		key, f := s.open(p.mapping)
		if f == nil {
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
	var err error
	for b := range made(builds) {
		err = errors.Join(err, s.keep(b))
	}
	return err
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

// keep brings a table that was made into the kernel. A file whose table cannot
// be read has none.
func (s *space) keep(b *build) error {
	segments := b.file.Segments()
	b.file.Close()
	path := b.users[0].path
	if b.err != nil && !errors.Is(b.err, unwind.ErrNoFrames) {
		s.log("no unwind table of %s: %v", path, b.err)
	}
	if b.table != nil && len(b.table.Rows) > maxRows {
		s.log("no unwind table of %s: %d rows are too many", path, len(b.table.Rows))
		b.table = nil
	}
	t, err := s.tables.add(b.key, b.table, segments)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t.users = len(b.users)
	for _, p := range b.users {
		p.table = t
	}
	s.log("unwind table of %s: %d rows", path, t.rows)
	return nil
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
	spec.Name, spec.MaxEntries = "space", uint32(max(len(code), 1))
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return fmt.Errorf("make list of mappings: %w", err)
	}
	defer m.Close() // the outer map keeps it
	keys, values := make([]uint32, len(code)), make([]probeMapping, len(code))
	for i, p := range code {
		keys[i] = uint32(i)
		values[i] = p.bpf()
	}
	if len(code) > 0 {
		if _, err := m.BatchUpdate(keys, values, nil); err != nil {
			return fmt.Errorf("fill list of mappings: %w", err)
		}
	}
	if err := s.outer.Put(s.slot, m); err != nil {
		return fmt.Errorf("install list of mappings: %w", err)
	}
	return nil
}

// bpf returns the mapping as the programs see it.
func (p *placed) bpf() probeMapping {
	m := probeMapping{Start: p.start, End: p.end}
	if t := p.table; t != nil && t.rows > 0 {
		m.Table, m.Rows = t.slot, t.rows
		m.Origin = bias(t.segments, p.mapping) + t.base
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
