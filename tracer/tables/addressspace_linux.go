package tables

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
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/mapofmaps"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// Space holds the executable mappings of one process as the BPF programs see them, each
// with the unwind table of its file. It is not safe for concurrent use.
type Space struct {
	Target *process.Target
	Tables *Tables
	Outer  *mapofmaps.Map // slot → mappings
	Inner  *ebpf.MapSpec  // describes a map of mappings
	Slot   uint32
	Code   []Placed // sorted by address
	Log    func(format string, args ...any)
	Warn   func(format string, args ...any)
}

// Placed is a mapping and the unwind table for its code.
type Placed struct {
	process.Mapping
	Table *Table // nil until load looked for it
}

// noTable marks code without a file and files that cannot have a table, so that load does
// not look again.
var noTable = &Table{}

const (
	maxMappings = 1<<17 - 1 // MAPPING_STEPS in bpf/tables.h
	maxRows     = 1 << 23   // ROW_STEPS
)

// update installs all, the executable mappings of the process, for the programs. changed
// reports whether they differ from the mappings installed before. A mapping that overlaps
// one in fresh counts as new: another file may have been mapped there that reuses the
// inode number of the earlier one.
func (s *Space) update(all, fresh []process.Mapping) (changed bool, err error) {
	code := make([]Placed, 0, len(all))
	for _, m := range all {
		if m.Path != process.Trampolines && len(code) < maxMappings {
			code = append(code, Placed{Mapping: m})
		}
	}
	slices.SortFunc(code, func(a, b Placed) int { return cmp.Compare(a.Start, b.Start) })
	isFresh := func(p Placed) bool { return slices.ContainsFunc(fresh, p.Overlaps) }
	if slices.EqualFunc(code, s.Code, func(a, b Placed) bool { return a.Same(b.Mapping) }) &&
		!slices.ContainsFunc(code, isFresh) {
		return false, nil
	}
	s.inherit(code, isFresh)
	s.load(code)
	if err = s.Tables.install(); err == nil {
		err = s.install(code)
	}
	if err != nil {
		s.release(code)
		return false, err
	}
	s.release(s.Code)
	s.Code = code
	return true, nil
}

// release gives up one use of the table of each mapping in code.
func (s *Space) release(code []Placed) {
	for i := range code {
		if t := code[i].Table; t != nil && t != noTable {
			s.Tables.release(t)
		}
	}
}

// inherit copies the tables of mappings that were installed before and are not fresh.
func (s *Space) inherit(code []Placed, isFresh func(Placed) bool) {
	before := make(map[process.ModuleKey]*Table, len(s.Code))
	for i := range s.Code {
		before[s.Code[i].Key()] = s.Code[i].Table
	}
	for i := range code {
		if t := before[code[i].Key()]; t != nil && !isFresh(code[i]) {
			code[i].Table = t
			if t != noTable {
				t.users++
			}
		}
	}
}

// build is a file whose table is being made, and the mappings that wait for it.
type build struct {
	key   TableKey
	file  *symbol.File
	table *unwind.Table
	err   error
	users []*Placed
}

// load finds or makes a table for each mapping that has none yet.
func (s *Space) load(code []Placed) {
	var builds []*build
	for i := range code {
		p := &code[i]
		if p.Table != nil {
			continue
		}
		key, f := s.open(p.Mapping)
		if f == nil {
			p.Table = noTable
			continue
		}
		if p.Table = s.Tables.find(key); p.Table != nil {
			f.Close()
			continue
		}
		if j := slices.IndexFunc(builds, func(b *build) bool { return b.key == key }); j >= 0 {
			f.Close()
			builds[j].users = append(builds[j].users, p)
			continue
		}
		builds = append(builds, &build{key: key, file: f, users: []*Placed{p}})
	}
	for b := range made(builds) {
		s.keep(b)
	}
}

// made makes the tables of builds on all processors and sends each build when it is done.
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

// keep stores the table of b. If the table cannot be read or stored, the file has none:
// stacks through its code end with a reason that shows it.
func (s *Space) keep(b *build) {
	segments := b.file.Segments()
	b.file.Close()
	path := b.users[0].Path
	if b.table != nil && len(b.table.Rows) > maxRows {
		b.table, b.err = nil, fmt.Errorf("%d rows are too many", len(b.table.Rows))
	}
	t, err := s.Tables.add(b.key, b.table, segments)
	b.table = nil // it may be large, and others are still being made
	t.users = len(b.users)
	for _, p := range b.users {
		p.Table = t
	}
	if err = errors.Join(b.err, err); err != nil && !errors.Is(err, unwind.ErrNoFrames) {
		s.Warn("no unwind table of %s: %v", path, err)
		return
	}
	if n := s.Tables.full; n > 0 {
		s.Warn("no room for %d more unwind rules: stacks end with no-rule in code that needs them", n)
		s.Tables.full = 0
	}
	s.Log("unwind table of %s: %d rows", path, t.Rows)
}

// open opens the file of a mapping. It returns nil if the mapping has no file, or one
// that cannot have tables.
func (s *Space) open(m process.Mapping) (TableKey, *symbol.File) {
	f, err := s.Target.OpenCode(m)
	if err != nil {
		s.Log("no unwind table of %s: %v", m.Path, err)
	}
	if err != nil || f == nil {
		return TableKey{}, nil
	}
	return KeyOf(m, f), f
}

// install replaces the programs' list of mappings in one step.
func (s *Space) install(code []Placed) error {
	spec := s.Inner.Copy()
	spec.Name, spec.MaxEntries = "space", uint32(len(code)+1)
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return fmt.Errorf("make list of mappings: %w", host.Shortage(err))
	}
	keys, values := []uint32{0}, []object.ProbeMapping{{Rows: uint32(len(code))}}
	for i, p := range code {
		keys = append(keys, uint32(i+1))
		values = append(values, p.bpf())
	}
	if _, err := m.BatchUpdate(keys, values, nil); err != nil {
		return errors.Join(fmt.Errorf("fill list of mappings: %w", err), m.Close())
	}
	if err := s.Outer.Install(map[uint32]*ebpf.Map{s.Slot: m}); err != nil {
		return fmt.Errorf("install list of mappings: %w", err)
	}
	return nil
}

// bpf returns the mapping in the form that the programs read.
func (p *Placed) bpf() object.ProbeMapping {
	m := object.ProbeMapping{Start: p.Start, End: p.End}
	if t := p.Table; t != nil && t.Rows > 0 {
		m.Table, m.Rows = t.Slot, t.Rows
		m.Origin = p.Bias(t.segments) + t.base
	}
	return m
}

// Mappings returns a copy of the installed mappings.
func (s *Space) Mappings() []process.Mapping {
	out := make([]process.Mapping, len(s.Code))
	for i := range s.Code {
		out[i] = s.Code[i].Mapping
	}
	return out
}
