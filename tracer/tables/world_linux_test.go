package tables

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/unwind"
	"rtrace-bpf/tracer/mapofmaps"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// world holds the maps of the programs, in the kernel but without the programs.
type world struct {
	t              *testing.T
	tables         *Tables
	spaces         *ebpf.Map
	rules          *ebpf.Map
	space          *ebpf.MapSpec // describes the inner maps of spaces
	warned, logged []string
}

// newWorld makes the maps; change edits their specifications and may be nil.
func newWorld(t *testing.T, change func(maps map[string]*ebpf.MapSpec)) *world {
	t.Helper()
	testutil.NeedBPF(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	spec, err := object.LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(spec.Maps)
	}
	w := &world{t: t, spaces: newMap(t, spec.Maps["spaces"]), rules: newMap(t, spec.Maps["rules"]), space: spec.Maps["spaces"].InnerMap}
	w.tables, err = New(mapofmaps.New(newMap(t, spec.Maps["tables"])), w.rules, spec.Maps["tables"].InnerMap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.tables.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func newMap(t *testing.T, spec *ebpf.MapSpec) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// of returns the Space of a process, in a slot.
func (w *world) of(pid int, slot uint32) *Space {
	s := &Space{
		Target: &process.Target{PID: pid, Machine: &process.Machines[0]}, Tables: w.tables, Outer: mapofmaps.New(w.spaces), Inner: w.space, Slot: slot,
		Log:  func(format string, args ...any) { w.logged = append(w.logged, fmt.Sprintf(format, args...)) },
		Warn: func(format string, args ...any) { w.warned = append(w.warned, fmt.Sprintf(format, args...)) },
	}
	w.t.Cleanup(func() {
		if err := s.Outer.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

// looping starts a process that waits, and returns its Space.
func (w *world) looping(slot uint32) *Space {
	w.t.Helper()
	child := testutil.Spawn(w.t, testutil.Build(w.t, "loop"), "1")
	child.Ready()
	return w.of(child.PID, slot)
}

// mapped returns the current executable mappings of a space's process.
func (w *world) mapped(s *Space) []process.Mapping {
	w.t.Helper()
	all, err := s.Target.Mappings()
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// allMapped returns all current mappings of a space's process, including those of data.
func (w *world) allMapped(s *Space) []proc.Map {
	w.t.Helper()
	all, err := proc.Maps(s.Target.PID)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// update updates the space, and fails the test unless it changes as wanted.
func (w *world) update(s *Space, all, fresh []process.Mapping, want bool) {
	w.t.Helper()
	changed, err := s.update(all, fresh)
	if err != nil {
		w.t.Fatal(err)
	}
	if changed != want {
		w.t.Errorf("changed: %v, want %v", changed, want)
	}
}

// inner returns the map in a slot of an outer map, nil if there is none.
func (w *world) inner(outer *ebpf.Map, slot uint32) *ebpf.Map {
	var m *ebpf.Map
	if err := outer.Lookup(slot, &m); err != nil {
		return nil
	}
	w.t.Cleanup(func() { m.Close() })
	return m
}

// elements reads all elements of an array map.
func elements[T any](w *world, m *ebpf.Map) []T {
	w.t.Helper()
	if m == nil {
		w.t.Fatal("there is no map in the slot")
	}
	all := make([]T, m.MaxEntries())
	for i := range all {
		if err := m.Lookup(uint32(i), &all[i]); err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

// view returns the mappings of a space as the programs see them; the first element holds
// their number.
func (w *world) view(s *Space) []object.ProbeMapping {
	w.t.Helper()
	all := elements[object.ProbeMapping](w, w.inner(w.spaces, s.Slot))
	if head := (object.ProbeMapping{Rows: uint32(len(all) - 1)}); all[0] != head {
		w.t.Fatalf("%d mappings, but the first element is %+v", len(all)-1, all[0])
	}
	return all[1:]
}

// at returns the entry that the programs see for the start of m.
func (w *world) at(s *Space, m process.Mapping) object.ProbeMapping {
	w.t.Helper()
	all := w.view(s)
	i := slices.IndexFunc(all, func(p object.ProbeMapping) bool { return p.Start == m.Start && p.End == m.End })
	if i < 0 {
		w.t.Fatalf("%s at %#x is not among %+v", m.Path, m.Start, all)
	}
	return all[i]
}

// table returns the rows of the table in a slot, and the rule of each.
func (w *world) table(slot uint32) (rows []object.ProbeRow, rules []unwind.Rule) {
	w.t.Helper()
	rows = elements[object.ProbeRow](w, w.inner(w.tables.outer.Map, slot))
	all := map[uint32]unwind.Rule{}
	for _, row := range rows {
		rule, ok := all[row.Rule]
		if !ok {
			if err := w.rules.Lookup(row.Rule, &rule); err != nil {
				w.t.Fatal(err)
			}
			all[row.Rule] = rule
		}
		rules = append(rules, rule)
	}
	return rows, rules
}

// holds fails the test unless the slot contains the table want, row for row.
func (w *world) holds(slot uint32, want *unwind.Table) {
	w.t.Helper()
	rows, rules := w.table(slot)
	if len(rows) != len(want.Rows) {
		w.t.Errorf("slot %d has %d rows, want %d", slot, len(rows), len(want.Rows))
		return
	}
	for i, row := range want.Rows {
		if rows[i].Pc != row.PC || rules[i] != want.Rules[row.Rule] {
			w.t.Errorf("slot %d, row %d: %#x %v, want %#x %v", slot, i, rows[i].Pc, rules[i], row.PC, want.Rules[row.Rule])
			return
		}
	}
}

// gone fails the test unless the slots are empty after all changes are done. It closes
// the outer map.
func (w *world) gone(slots ...uint32) {
	w.t.Helper()
	if err := w.tables.outer.Close(); err != nil {
		w.t.Fatal(err)
	}
	for _, slot := range slots {
		if w.inner(w.tables.outer.Map, slot) != nil {
			w.t.Errorf("slot %d still has a table", slot)
		}
	}
}
