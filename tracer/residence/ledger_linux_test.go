package residence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"rtrace-bpf/internal/linux/resident"
)

const page = 4096

// pagesAt returns a view of which pages, given by number, are resident; of mappings too.
func pagesAt(mapped []resident.Range, numbers ...uint64) *View {
	v := new(View)
	v.setMapped(mapped)
	for _, n := range numbers {
		v.Ranges = append(v.Ranges, resident.Range{Start: n * page, End: (n + 1) * page})
	}
	return v
}

// everywhere is one mapping.
var everywhere = []resident.Range{{Start: 0, End: 1 << 40}}

// follower holds the blocks that a ledger's changes lead to.
type follower struct {
	t      *testing.T
	blocks map[uint64]Change
}

func (f *follower) change(c *Change) {
	f.t.Helper()
	old, ok := f.blocks[c.Start]
	switch {
	case c.Start >= c.End:
		f.t.Errorf("empty block %+v", *c)
	case c.Gone && (!ok || old.End != c.End || old.Cause != c.Cause):
		f.t.Errorf("%+v goes, and was %+v", *c, old)
	case c.Gone:
		delete(f.blocks, c.Start)
	case ok:
		f.t.Errorf("%+v comes over %+v", *c, old)
	default:
		f.blocks[c.Start] = *c
	}
}

// owners returns the stack of each page of the blocks.
func (f *follower) owners() map[uint64]uint64 {
	all := map[uint64]uint64{}
	for _, b := range f.blocks {
		for at := b.Start; at < b.End; at += page {
			if _, ok := all[at/page]; ok {
				f.t.Errorf("page %d is in two blocks", at/page)
			}
			all[at/page] = b.Cause.Stack
		}
	}
	return all
}

// Pages belong to the fault that most likely brought them.
func TestOwners(t *testing.T) {
	stack := func(n uint64) Cause { return Cause{Stack: n} }
	for name, test := range map[string]struct {
		do   func(l *Ledger, look func(numbers ...uint64))
		want map[uint64]uint64 // stack by page; 0 for none
		sums Sums
	}{
		"a fault": {func(l *Ledger, look func(...uint64)) {
			l.Fault(5*page+1, stack(1), false)
			look(5)
		}, map[uint64]uint64{5: 1}, Sums{0, page, 0}},
		"nobody knows": {func(_ *Ledger, look func(...uint64)) {
			look(5)
		}, map[uint64]uint64{5: 0}, Sums{0, 0, page}},
		"the smallest block wins": {func(l *Ledger, look func(...uint64)) {
			l.Fault(15*page, stack(1), false)
			l.Fault(31*page, stack(2), false)
			look(15, 16, 31)
		}, map[uint64]uint64{15: 1, 16: 2, 31: 2}, Sums{0, 3 * page, 0}},
		"another huge page does not": {func(l *Ledger, look func(...uint64)) {
			l.Fault(511*page, stack(1), false)
			look(511, 512)
		}, map[uint64]uint64{511: 1, 512: 0}, Sums{0, page, page}},
		"an earlier page of the block": {func(l *Ledger, look func(...uint64)) {
			l.Fault(8*page, stack(1), false)
			look(8)
			look(8, 9)
		}, map[uint64]uint64{8: 1, 9: 1}, Sums{0, 2 * page, 0}},
		"the kernel is still busy": {func(l *Ledger, look func(...uint64)) {
			l.Fault(8*page, stack(1), false)
			look()
			look(8)
		}, map[uint64]uint64{8: 1}, Sums{0, page, 0}},
		"it has given up": {func(l *Ledger, look func(...uint64)) {
			l.Fault(8*page, stack(1), false)
			look()
			look()
			look(8)
		}, map[uint64]uint64{8: 0}, Sums{0, 0, page}},
		"a copy stays with the first": {func(l *Ledger, look func(...uint64)) {
			l.Fault(8*page, stack(1), false)
			look(8)
			l.Fault(8*page, stack(2), true)
			look(8)
		}, map[uint64]uint64{8: 1}, Sums{0, page, 0}},
		"gone and touched again": {func(l *Ledger, look func(...uint64)) {
			l.Fault(8*page, stack(1), false)
			l.Fault(9*page, stack(1), false)
			look(8, 9)
			l.Fault(8*page, stack(2), false)
			look(8, 9)
		}, map[uint64]uint64{8: 2, 9: 1}, Sums{0, 2 * page, 0}},
		"gone": {func(l *Ledger, look func(...uint64)) {
			for n := range uint64(5) {
				l.Fault(n*page, stack(1), false)
			}
			look(0, 1, 2, 3, 4)
			look(0, 1, 3, 4)
		}, map[uint64]uint64{0: 1, 1: 1, 3: 1, 4: 1}, Sums{0, 4 * page, 0}},
		"moved": {func(l *Ledger, look func(...uint64)) {
			l.Fault(8*page, stack(1), false)
			l.Fault(9*page, stack(2), false)
			look(8)
			l.Move(8*page, 2*page, Area{Start: 600 * page, Size: 2 * page, Cause: stack(3)})
			look(600, 601)
		}, map[uint64]uint64{600: 1, 601: 2}, Sums{0, 2 * page, 0}},
		"moved to where a huge page fits": {func(l *Ledger, look func(...uint64)) {
			l.Fault(512*page, stack(1), false)
			l.Move(512*page, 1024*page, Area{Start: 2000 * page, Size: 1536 * page, Cause: stack(3)})
			look(2048, 2049)
		}, map[uint64]uint64{2048: 1, 2049: 1}, Sums{0, 2 * page, 0}},
		"populated": {func(l *Ledger, look func(...uint64)) {
			l.Fault(7*page, stack(1), false)
			l.Map(Area{Start: 8 * page, Size: 2 * page, Populated: true, Cause: stack(2)})
			look(7, 8, 9)
		}, map[uint64]uint64{7: 1, 8: 2, 9: 2}, Sums{0, 3 * page, 0}},
		"only mapped": {func(l *Ledger, look func(...uint64)) {
			l.Map(Area{Start: 8 * page, Size: 2 * page, Cause: stack(2)})
			look()
			look(8, 9)
		}, map[uint64]uint64{8: 2, 9: 2}, Sums{0, 2 * page, 0}},
		"executed": {func(l *Ledger, look func(...uint64)) {
			l.Fault(8*page, stack(1), false)
			l.Clear()
			look(8)
		}, map[uint64]uint64{8: 0}, Sums{0, 0, page}},
	} {
		t.Run(name, func(t *testing.T) {
			l, f := NewLedger(page, true), &follower{t, map[uint64]Change{}}
			l.Begin(pagesAt(everywhere))
			test.do(l, func(numbers ...uint64) { l.Look(pagesAt(everywhere, numbers...), f.change) })
			if got := f.owners(); !maps.Equal(got, test.want) {
				t.Errorf("pages have stacks %v, want %v", got, test.want)
			}
			if l.Sums() != test.sums {
				t.Errorf("sums %+v, want %+v", l.Sums(), test.sums)
			}
		})
	}
}

// What was resident before is in no block, also after it has moved.
// The kernel may use a part of an area for its mapping, and the rest for the next one.
func TestOverlappingAreas(t *testing.T) {
	l := NewLedger(page, true)
	f := follower{t: t, blocks: map[uint64]Change{}}
	l.Begin(pagesAt(nil))
	l.Map(Area{Start: 1000 * page, Size: 4000 * page, Cause: Cause{Stack: 2}})
	l.Map(Area{Start: 2000 * page, Size: 1000 * page, Cause: Cause{Stack: 3}})
	l.Map(Area{Start: 4000 * page, Size: 3000 * page, Cause: Cause{Stack: 4}})
	l.Look(pagesAt(everywhere, 999, 1000, 1999, 2000, 2999, 3000, 3999, 4000, 6999, 7000), f.change)
	want := map[uint64]uint64{999: 0, 1000: 2, 1999: 2, 2000: 3, 2999: 3, 3000: 2, 3999: 2, 4000: 4, 6999: 4, 7000: 0}
	if got := f.owners(); !maps.Equal(got, want) {
		t.Errorf("pages are of the stacks %v, want %v", got, want)
	}
}

// An area whose mapping is not in the look that was read when it was made explains its pages at
// the next look. It no longer does when nothing has been mapped in it.
func TestAreaDuringLook(t *testing.T) {
	l := NewLedger(page, true)
	f := follower{t: t, blocks: map[uint64]Change{}}
	l.Begin(pagesAt(nil))
	l.Map(Area{Start: 8 * page, Size: 2 * page, Cause: Cause{Stack: 2}})
	l.Map(Area{Start: 8000 * page, Size: 2 * page, Cause: Cause{Stack: 3}})
	l.Look(pagesAt(nil), f.change)
	l.Look(pagesAt([]resident.Range{{Start: 8 * page, End: 10 * page}}, 8, 9), f.change)
	l.Look(pagesAt(everywhere, 8, 9, 8000), f.change)
	if got, want := f.owners(), map[uint64]uint64{8: 2, 9: 2, 8000: 0}; !maps.Equal(got, want) {
		t.Errorf("pages are of the stacks %v, want %v", got, want)
	}
}

func TestBefore(t *testing.T) {
	l, f := NewLedger(page, true), &follower{t, map[uint64]Change{}}
	l.Begin(pagesAt(everywhere, 1, 2, 3))
	l.Fault(4*page, Cause{Stack: 9}, false)
	l.Move(2*page, page, Area{Start: 700 * page, Size: page})
	l.Look(pagesAt(everywhere, 1, 4, 700), f.change)
	if got, want := f.owners(), map[uint64]uint64{4: 9}; !maps.Equal(got, want) {
		t.Errorf("pages %v, want %v", got, want)
	}
	if want := (Sums{2 * page, page, 0}); l.Sums() != want {
		t.Errorf("sums %+v, want %+v", l.Sums(), want)
	}
}

// A page does not belong to the fault of another mapping next to it.
func TestBorders(t *testing.T) {
	l, f := NewLedger(page, true), &follower{t, map[uint64]Change{}}
	two := []resident.Range{{Start: 0, End: 9 * page}, {Start: 9 * page, End: 1 << 40}}
	l.Begin(pagesAt(two))
	l.Fault(8*page, Cause{Stack: 1}, false)
	l.Look(pagesAt(two, 8, 9), f.change)
	if got, want := f.owners(), map[uint64]uint64{8: 1, 9: 0}; !maps.Equal(got, want) {
		t.Errorf("pages %v, want %v", got, want)
	}
}

// At the end of the process, what was touched since the last look counts.
func TestEnd(t *testing.T) {
	l, f := NewLedger(page, true), &follower{t, map[uint64]Change{}}
	l.Begin(pagesAt(everywhere))
	l.Fault(1*page, Cause{Stack: 1}, false)
	l.Look(pagesAt(everywhere, 1), f.change)
	l.Fault(2*page, Cause{Stack: 2}, false)
	if touched := l.End(f.change); touched != page {
		t.Errorf("%d bytes touched, want one page", touched)
	}
	if got, want := f.owners(), map[uint64]uint64{1: 1, 2: 2}; !maps.Equal(got, want) {
		t.Errorf("pages %v, want %v", got, want)
	}
}

// Whatever comes and goes, the blocks are the resident pages that were not there before, and each
// page with a fault of its own belongs to it.
func TestAtRandom(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			trusts := seed%2 == 0 // else it must be notified of new mappings
			l, f := NewLedger(page, trusts), &follower{t, map[uint64]Change{}}
			before, owner := map[uint64]bool{}, map[uint64]uint64{}
			for n := range uint64(1500) {
				if r.IntN(10) == 0 {
					before[n] = true
				}
			}
			l.Begin(pagesAt(everywhere, slices.Sorted(maps.Keys(before))...))
			for range 40 {
				for range r.IntN(60) {
					n, size := r.Uint64N(1500), r.Uint64N(20)
					for k := n; k < n+size; k++ { // given back and not touched
						delete(before, k)
						delete(owner, k)
					}
					if !trusts {
						l.Map(Area{Start: n * page, Size: size * page, Cause: Cause{Stack: 9}})
					}
					if before[n] {
						continue
					}
					by := 1 + r.Uint64N(5)
					for k := n; k < n+r.Uint64N(20); k++ {
						if !before[k] && owner[k] == 0 {
							l.Fault(k*page, Cause{Stack: by}, false)
							owner[k] = by
						}
					}
				}
				here := maps.Clone(before)
				for k := range owner {
					here[k] = true
				}
				l.Look(pagesAt(everywhere, slices.Sorted(maps.Keys(here))...), f.change)
				if got := f.owners(); !maps.Equal(got, owner) {
					t.Fatalf("pages %v, want %v", got, owner)
				}
				if want := (Sums{uint64(len(before)) * page, uint64(len(owner)) * page, 0}); l.Sums() != want {
					t.Fatalf("sums %+v, want %+v", l.Sums(), want)
				}
			}
		})
	}
}
