package tables

import (
	"cmp"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// slotsOf returns the slots of the tables of a space, by the inode of the file;
// inode 0 is the kernel's library.
func (w *world) slotsOf(s *Space) map[uint64]uint32 {
	w.t.Helper()
	slots := map[uint64]uint32{}
	for _, m := range w.mapped(s) {
		if p := w.at(s, m); p.Rows > 0 {
			slots[m.Inode] = p.Table
		}
	}
	return slots
}

// Two processes that run one program use one table per file.
func TestSpacesShareTables(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.looping(0), w.looping(1)
	w.update(a, w.mapped(a), nil, true)
	first := w.slotsOf(a)
	if len(first) < 3 { // program, C library, dynamic loader, most often the vDSO
		t.Fatalf("tables of %d files", len(first))
	}
	made := w.tables.next
	w.update(b, w.mapped(b), nil, true)
	for inode, slot := range w.slotsOf(b) {
		if first[inode] != slot {
			t.Errorf("inode %d: slot %d, and %d for the other process", inode, slot, first[inode])
		}
	}
	if w.tables.next != made || len(w.tables.Files) != len(first) {
		t.Errorf("%d slots for %d files, %d are known", w.tables.next, len(first), len(w.tables.Files))
	}
	w.counted(a, b)
	if len(w.warned) > 0 {
		t.Errorf("warned: %q", w.warned)
	}
}

// counted fails the test unless each table has as many users as the spaces have mappings
// of its file.
func (w *world) counted(spaces ...*Space) {
	w.t.Helper()
	users := map[uint32]int{}
	for _, s := range spaces {
		for _, p := range w.view(s) {
			if p.Rows > 0 {
				users[p.Table]++
			}
		}
	}
	for _, x := range w.tables.Files {
		if x.Rows > 0 && x.users != users[x.Slot] {
			w.t.Errorf("slot %d has %d users, want %d", x.Slot, x.users, users[x.Slot])
		}
	}
}

// Tables stay as long as one process maps their files, then they leave the
// kernel and others get their slots.
func TestSpacesLeave(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.looping(0), w.looping(1)
	for _, s := range []*Space{a, b} {
		w.update(s, w.mapped(s), nil, true)
	}
	var slots []uint32
	for _, slot := range w.slotsOf(a) {
		slots = append(slots, slot)
	}
	made := w.tables.next
	w.update(a, nil, nil, true)
	if err := w.tables.outer.Close(); err != nil {
		t.Fatal(err)
	}
	w.counted(b)
	for _, slot := range slots {
		if rows, _ := w.table(slot); len(rows) == 0 {
			t.Errorf("slot %d has no rows", slot)
		}
	}
	w.update(b, nil, nil, true)
	w.gone(slots...)
	if len(w.tables.Files) > 0 {
		t.Errorf("%d files are still known", len(w.tables.Files))
	}
	w.update(a, w.mapped(a), nil, true)
	for inode, slot := range w.slotsOf(a) {
		if !slices.Contains(slots, slot) {
			t.Errorf("inode %d: slot %d is not one of %v", inode, slot, slots)
		}
	}
	if w.tables.next != made {
		t.Errorf("%d slots were used, want %d as before", w.tables.next, made)
	}
}

// Nothing is installed again unless something changed: it would void the rules that the
// programs remember.
func TestSpaceOfTheSameMappings(t *testing.T) {
	w := newWorld(t, nil)
	s := w.looping(0)
	all := w.mapped(s)
	w.update(s, all, nil, true)
	slots, there := w.slotsOf(s), held(s.Outer, s.Slot)
	shuffled := slices.Clone(all)
	slices.Reverse(shuffled)
	stub := process.Mapping{Start: 0x7fff_0000, End: 0x7fff_1000, Path: process.Trampolines}
	elsewhere := process.Mapping{Start: 0x1000, End: 0x2000, Inode: 1}
	w.update(s, all, nil, false)
	w.update(s, append(shuffled, stub), []process.Mapping{stub, elsewhere}, false)
	if got := held(s.Outer, s.Slot); got != there {
		t.Errorf("map %d replaced map %d", got, there)
	}
	w.update(s, all, all[:1], true)
	if got := held(s.Outer, s.Slot); got == there {
		t.Error("a file that was mapped again changed nothing")
	}
	for inode, slot := range w.slotsOf(s) {
		if slots[inode] != slot {
			t.Errorf("inode %d: slot %d, before %d", inode, slot, slots[inode])
		}
	}
	w.counted(s)
}

// A mapping keeps its table when other mappings come and go. Code without a file is
// listed, without rows.
func TestSpaceGrowsAndShrinks(t *testing.T) {
	w := newWorld(t, nil)
	s := w.looping(0)
	all := w.mapped(s)
	code := process.Mapping{Start: 0x1000, End: 0x2000}
	for _, now := range [][]process.Mapping{all[1:], append(slices.Clone(all), code), all[:1], all} {
		w.update(s, now, nil, true)
		view := w.view(s)
		if len(view) != len(now) || !slices.IsSortedFunc(view, func(a, b object.ProbeMapping) int { return cmp.Compare(a.Start, b.Start) }) {
			t.Fatalf("%d mappings became %+v", len(now), view)
		}
		if slices.Contains(now, code) && view[0] != (object.ProbeMapping{Start: code.Start, End: code.End}) {
			t.Errorf("code without a file is %+v", view[0])
		}
		w.counted(s)
	}
	if len(w.tables.Files) != len(w.slotsOf(s)) {
		t.Errorf("%d files are known, %d are used", len(w.tables.Files), len(w.slotsOf(s)))
	}
}

// For any address of libc the programs find the rule that the file's table contains.
func TestSpaceLeadsToTheRules(t *testing.T) {
	w := newWorld(t, nil)
	s := w.looping(0)
	all := w.mapped(s)
	w.update(s, all, nil, true)
	i := slices.IndexFunc(all, func(m process.Mapping) bool { return strings.HasPrefix(filepath.Base(m.Path), "libc.so") })
	if i < 0 {
		t.Fatal("no libc is mapped")
	}
	libc := all[i]
	f, err := symbol.Open(libc.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want, err := unwind.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	p := w.at(s, libc)
	w.holds(p.Table, want)
	rows, rules := w.table(p.Table)
	found := map[unwind.Kind]int{}
	base := w.loaded(s, libc)
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		addr := libc.Start + random.Uint64N(libc.End-libc.Start)
		// As find_row in bpf/tables.h, except for the search algorithm.
		got := unwind.RuleNone
		for j, row := range rows {
			if uint64(row.Pc) > addr-p.Origin {
				break
			}
			got = rules[j]
		}
		if right := want.Find(addr - base); got != right {
			t.Fatalf("%#x, linked at %#x: %v, want %v", addr, addr-base, got, right)
		}
		found[got.Kind()]++
	}
	if found[unwind.SP] < 500 || found[unwind.None] == 0 {
		t.Errorf("rules found by kind %v: that is not libc", found)
	}
}

// loaded returns the load bias of a library whose first segment is linked at 0: the
// address where the file's first byte is mapped.
func (w *world) loaded(s *Space, m process.Mapping) uint64 {
	w.t.Helper()
	for _, x := range w.allMapped(s) {
		if x.Inode == m.Inode && x.Offset == 0 {
			return x.Start
		}
	}
	w.t.Fatalf("the start of %s is not mapped", m.Path)
	return 0
}
