package tracer

import (
	"testing"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/unwind"
)

// tableOf returns a table with a row for each rule, and an end.
func tableOf(rules ...unwind.Rule) *unwind.Table {
	built := &unwind.Table{Base: 0x1000, Rules: append([]unwind.Rule{unwind.RuleNone}, rules...)}
	for i := range rules {
		built.Rows = append(built.Rows, unwind.Row{PC: uint32(16 * i), Rule: uint32(i + 1)})
	}
	built.Rows = append(built.Rows, unwind.Row{PC: uint32(16 * len(rules))})
	return built
}

// keep makes the table of a file of so many bytes known, and installs it.
func (w *world) keep(size int64, built *unwind.Table) *table {
	w.t.Helper()
	x, err := w.tables.add(tableKey{size: size}, built, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.tables.install(); err != nil {
		w.t.Fatal(err)
	}
	return x
}

// A program that finds nothing uses rule 0, so that must be none, from the start.
func TestTablesBeginWithFixedRules(t *testing.T) {
	w := newWorld(t, nil)
	for number, want := range []unwind.Rule{ruleNone: unwind.RuleNone, ruleUnsupported: unwind.RuleUnsupported} {
		got := ^unwind.Rule(0)
		if err := w.rules.Lookup(uint32(number), &got); err != nil || got != want {
			t.Errorf("rule %d is %v, %v; want %v", number, got, err, want)
		}
	}
	w.keep(1, tableOf(unwind.RuleEnd))
	if n, known := w.tables.number(unwind.RuleEnd), len(w.tables.known); n != 2 || known != 3 {
		t.Errorf("the first rule of a file has number %d of %d", n, known)
	}
}

// A rule is in the kernel once, whatever tables have it.
func TestTablesShareRules(t *testing.T) {
	w := newWorld(t, nil)
	one := tableOf(0x101, 0x201, unwind.RuleEnd)
	two := tableOf(unwind.RuleEnd, 0x301, 0x101)
	a, b := w.keep(1, one), w.keep(2, two)
	w.holds(a.slot, one)
	w.holds(b.slot, two)
	if n := len(w.tables.known); n != 2+4 {
		t.Errorf("%d rules, want 6", n)
	}
	if a.base != one.Base || int(a.rows) != len(one.Rows) {
		t.Errorf("table at %#x has %d rows", a.base, a.rows)
	}
}

// Rules beyond the last place are unsupported: those that have one stay right,
// also in later tables.
func TestTablesOverflowOfRules(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["rules"].MaxEntries = 4 })
	x := w.keep(1, tableOf(0x101, 0x201, 0x301, 0x101, 0x401))
	w.holds(x.slot, tableOf(0x101, 0x201, unwind.RuleUnsupported, 0x101, unwind.RuleUnsupported))
	y := w.keep(2, tableOf(0x301, 0x201, unwind.RuleUnsupported))
	w.holds(y.slot, tableOf(unwind.RuleUnsupported, 0x201, unwind.RuleUnsupported))
	if w.tables.full != 3 {
		t.Errorf("%d rules found no place, want 3", w.tables.full)
	}
}

// Without a slot a file has no table and that is said. One that was given back
// serves again, once the kernel let go of what was in it.
func TestTablesOverflowOfSlots(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["tables"].MaxEntries = 2 })
	a, b := w.keep(1, tableOf(0x101)), w.keep(2, tableOf(0x201))
	key := tableKey{size: 3}
	x, err := w.tables.add(key, tableOf(0x301), nil)
	if err == nil || x.rows != 0 {
		t.Errorf("a third file has %d rows, error %v", x.rows, err)
	}
	w.tables.release(a)
	w.tables.release(x)
	w.gone(a.slot)
	again := w.keep(3, tableOf(0x301))
	if again.slot != a.slot {
		t.Errorf("slot %d serves, want %d", again.slot, a.slot)
	}
	w.holds(again.slot, tableOf(0x301))
	w.holds(b.slot, tableOf(0x201))
}

// The last user takes the table out of the kernel, and no one before.
func TestTablesLeaveWithTheLastUser(t *testing.T) {
	w := newWorld(t, nil)
	x := w.keep(1, tableOf(0x101))
	if w.tables.find(x.key) != x || w.tables.find(tableKey{size: 2}) != nil {
		t.Error("found the wrong table")
	}
	w.tables.release(x)
	if err := w.tables.outer.Close(); err != nil {
		t.Fatal(err)
	}
	w.holds(x.slot, tableOf(0x101))
	w.tables.release(x)
	w.gone(x.slot)
	if w.tables.find(x.key) != nil {
		t.Error("a table that is gone was found")
	}
}

// Files without tables take no slot; they are known, so that nobody reads them
// again.
func TestTablesWithoutRows(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["tables"].MaxEntries = 1 })
	none, empty := w.keep(1, nil), w.keep(2, &unwind.Table{Rules: []unwind.Rule{unwind.RuleNone}})
	if none.rows != 0 || empty.rows != 0 || w.tables.find(none.key) != none {
		t.Errorf("%+v %+v", none, empty)
	}
	w.holds(w.keep(3, tableOf(0x101)).slot, tableOf(0x101))
	w.tables.release(empty)
	w.tables.release(none)
	w.tables.release(none)
	if n := len(w.tables.files); n != 1 {
		t.Errorf("%d files are known, want 1", n)
	}
	if p := (&placed{table: none}).bpf(); p.Rows != 0 {
		t.Errorf("programs would look for %d rows", p.Rows)
	}
}

// What the kernel refuses costs no slot.
func TestTablesThatCannotBeMade(t *testing.T) {
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["tables"].MaxEntries = 1 })
	size := w.tables.inner.ValueSize
	w.tables.inner.ValueSize = 0
	x, err := w.tables.add(tableKey{size: 1}, tableOf(0x101), nil)
	if err == nil || x.rows != 0 {
		t.Errorf("a table without values has %d rows, error %v", x.rows, err)
	}
	w.tables.inner.ValueSize = size
	w.holds(w.keep(2, tableOf(0x201)).slot, tableOf(0x201))
}
