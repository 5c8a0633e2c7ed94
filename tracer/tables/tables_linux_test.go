package tables

import (
	"testing"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/unwind"
)

// tableOf returns a table with a row for each rule, and a last row that ends it.
func tableOf(rules ...unwind.Rule) *unwind.Table {
	built := &unwind.Table{Base: 0x1000, Rules: append([]unwind.Rule{unwind.RuleNone}, rules...)}
	for i := range rules {
		built.Rows = append(built.Rows, unwind.Row{PC: uint32(16 * i), Rule: uint32(i + 1)})
	}
	built.Rows = append(built.Rows, unwind.Row{PC: uint32(16 * len(rules))})
	return built
}

// keep adds and installs the table of a file of the given size in bytes.
func (w *world) keep(size int64, built *unwind.Table) *Table {
	w.t.Helper()
	x, err := w.tables.add(TableKey{size: size}, built, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.tables.install(); err != nil {
		w.t.Fatal(err)
	}
	return x
}

// A program that finds no row uses rule 0, so rule 0 must be RuleNone from the start.
func TestTablesBeginWithFixedRules(t *testing.T) {
	w := newWorld(t, nil)
	for number, want := range []unwind.Rule{ruleNone: unwind.RuleNone, ruleUnsupported: unwind.RuleUnsupported} {
		got := ^unwind.Rule(0)
		if err := w.rules.Lookup(uint32(number), &got); err != nil || got != want {
			t.Errorf("rule %d is %v, %v; want %v", number, got, err, want)
		}
	}
	w.keep(1, tableOf(unwind.RuleEnd))
	if n, known := w.tables.number(unwind.RuleEnd), len(w.tables.Known); n != 2 || known != 3 {
		t.Errorf("the first rule of a file has number %d of %d", n, known)
	}
}

// A rule is in the kernel once, however many tables use it.
func TestTablesShareRules(t *testing.T) {
	w := newWorld(t, nil)
	one := tableOf(0x101, 0x201, unwind.RuleEnd)
	two := tableOf(unwind.RuleEnd, 0x301, 0x101)
	a, b := w.keep(1, one), w.keep(2, two)
	w.holds(a.Slot, one)
	w.holds(b.Slot, two)
	if n := len(w.tables.Known); n != 2+4 {
		t.Errorf("%d rules, want 6", n)
	}
	if a.base != one.Base || int(a.Rows) != len(one.Rows) {
		t.Errorf("table at %#x has %d rows", a.base, a.Rows)
	}
}

// Rules for which there is no room are unsupported. Those that are there stay correct, in
// later tables too.
func TestTablesOverflowOfRules(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["rules"].MaxEntries = 4 })
	x := w.keep(1, tableOf(0x101, 0x201, 0x301, 0x101, 0x401))
	w.holds(x.Slot, tableOf(0x101, 0x201, unwind.RuleUnsupported, 0x101, unwind.RuleUnsupported))
	y := w.keep(2, tableOf(0x301, 0x201, unwind.RuleUnsupported))
	w.holds(y.Slot, tableOf(unwind.RuleUnsupported, 0x201, unwind.RuleUnsupported))
	if w.tables.full != 3 {
		t.Errorf("%d rules had no room, want 3", w.tables.full)
	}
}

// Without a free slot, add returns an error and a table without rows. A slot is used
// again once the kernel has released what was in it.
func TestTablesOverflowOfSlots(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["tables"].MaxEntries = 2 })
	a, b := w.keep(1, tableOf(0x101)), w.keep(2, tableOf(0x201))
	key := TableKey{size: 3}
	x, err := w.tables.add(key, tableOf(0x301), nil)
	if err == nil || x.Rows != 0 {
		t.Errorf("a third file has %d rows, error %v", x.Rows, err)
	}
	w.tables.release(a)
	w.tables.release(x)
	w.gone(a.Slot)
	again := w.keep(3, tableOf(0x301))
	if again.Slot != a.Slot {
		t.Errorf("slot %d is used, want %d", again.Slot, a.Slot)
	}
	w.holds(again.Slot, tableOf(0x301))
	w.holds(b.Slot, tableOf(0x201))
}

// A table is removed from the kernel with its last user, not before.
func TestTablesLeaveWithTheLastUser(t *testing.T) {
	w := newWorld(t, nil)
	x := w.keep(1, tableOf(0x101))
	if w.tables.find(x.key) != x || w.tables.find(TableKey{size: 2}) != nil {
		t.Error("found the wrong table")
	}
	w.tables.release(x)
	if err := w.tables.outer.Close(); err != nil {
		t.Fatal(err)
	}
	w.holds(x.Slot, tableOf(0x101))
	w.tables.release(x)
	w.gone(x.Slot)
	if w.tables.find(x.key) != nil {
		t.Error("a removed table was found")
	}
}

// Files without tables take no slot. They are remembered, so that they are not read
// again.
func TestTablesWithoutRows(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["tables"].MaxEntries = 1 })
	none, empty := w.keep(1, nil), w.keep(2, &unwind.Table{Rules: []unwind.Rule{unwind.RuleNone}})
	if none.Rows != 0 || empty.Rows != 0 || w.tables.find(none.key) != none {
		t.Errorf("%+v %+v", none, empty)
	}
	w.holds(w.keep(3, tableOf(0x101)).Slot, tableOf(0x101))
	w.tables.release(empty)
	w.tables.release(none)
	w.tables.release(none)
	if n := len(w.tables.Files); n != 1 {
		t.Errorf("%d files are known, want 1", n)
	}
	if p := (&Placed{Table: none}).bpf(); p.Rows != 0 {
		t.Errorf("the programs would search %d rows", p.Rows)
	}
}

// A table that the kernel refuses takes no slot.
func TestTablesThatCannotBeMade(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["tables"].MaxEntries = 1 })
	size := w.tables.inner.ValueSize
	w.tables.inner.ValueSize = 0
	x, err := w.tables.add(TableKey{size: 1}, tableOf(0x101), nil)
	if err == nil || x.Rows != 0 {
		t.Errorf("a table without values has %d rows, error %v", x.Rows, err)
	}
	w.tables.inner.ValueSize = size
	w.holds(w.keep(2, tableOf(0x201)).Slot, tableOf(0x201))
}
