package tracer

import (
	"cmp"
	"slices"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/record"
)

// ranges is a set of addresses: disjoint ranges, sorted by address.
type ranges []process.Extent

func (r *ranges) add(x process.Extent) {
	i, _ := slices.BinarySearchFunc(*r, x.Start, func(e process.Extent, start uint64) int { return cmp.Compare(e.End, start) })
	j := i
	for ; j < len(*r) && (*r)[j].Start <= x.End; j++ {
		x.Start, x.End = min(x.Start, (*r)[j].Start), max(x.End, (*r)[j].End)
	}
	*r = slices.Replace(*r, i, j, x)
}

func (r ranges) has(x process.Extent) bool {
	i, _ := slices.BinarySearchFunc(r, x.End, func(e process.Extent, end uint64) int { return cmp.Compare(e.End, end) })
	return i < len(r) && r[i].Start <= x.Start
}

// insideHeap fails the test unless each live block in the trace is in a part of the heap
// whose growth was recorded before. It returns the heap at the end. Blocks from before
// the trace may have mappings of their own, which no record contains: blocks that realloc
// leaves in place there are not checked.
func insideHeap(t *testing.T, records []*trace.Record) ranges {
	t.Helper()
	var heap ranges
	live := map[uint64]bool{}
	grown, blocks, bad := 0, 0, 0
	for _, rec := range records {
		c := &rec.Call
		switch rec.Kind {
		case trace.KindExec:
			heap = nil
			clear(live)
			continue
		case trace.KindHeapGrow:
			grown++
			heap.add(process.Extent{Start: rec.HeapGrow.Address, End: rec.HeapGrow.Address + rec.HeapGrow.Size})
			continue
		case trace.KindCall:
		default:
			continue
		}
		if c.Op == trace.OpFree {
			delete(live, c.ID)
			continue
		}
		known := live[c.OldID]
		delete(live, c.OldID)
		live[c.ID] = true
		blocks++
		if c.Op == trace.OpMove && !known && c.OldID == c.ID {
			continue
		}
		if !heap.has(process.Extent{Start: c.ID, End: c.ID + max(c.Size, 1)}) {
			if bad++; bad < 5 {
				t.Errorf("call %d, %s %s: %d bytes at %#x are outside of the heap", c.Seq, c.Op, c.Function, c.Size, c.ID)
			}
		}
	}
	if grown == 0 || blocks == 0 {
		t.Errorf("%d growths and %d blocks in the trace", grown, blocks)
	}
	t.Logf("%d growths, %d blocks, %d of them outside", grown, blocks, bad)
	return heap
}

// The blocks of our test programs are in the recorded heap, whatever way events take.
func TestBlocksAreInTheHeap(t *testing.T) {
	testutil.NeedBPF(t)
	for _, program := range [][]string{
		{"heapgrow"}, {"alloc", "8", "500", "log"}, {"threads_exit", "200"}, {"realloc_race", "3", "50", "log"}, {"every"}, {"cxx", "50"},
	} {
		all := ways(t)
		if program[0] != "heapgrow" && program[0] != "realloc_race" {
			all = all[:len(all)/2] // removing perf events takes seconds
		}
		for _, way := range all {
			t.Run(program[0]+"-"+way.name, func(t *testing.T) {
				r, _, records := traceRun(t, func(o *plan.Options) {
					way.set(o)
					o.HeapGrowth = true
				}, testutil.Build(t, program[0]), program[1:]...)
				insideHeap(t, records)
				if n := r.tracer.Stats().Lost; n != [order.LossCount]uint64{} {
					t.Errorf("lost: %v", n)
				}
			})
		}
	}
}

// Growth that the first records include is not recorded again.
func TestHeapIncludesGrowth(t *testing.T) {
	h := record.Heap{Regions: []process.Extent{{Start: 0x1000, End: 0x5000}, {Start: 0x9000, End: 0xa000}}, Seen: 100}
	for _, test := range []struct {
		name             string
		time, addr, size uint64
		want             bool
	}{
		{"inside", 100, 0x4000, 0x1000, true},
		{"inside the second one", 1, 0x9000, 0x1000, true},
		{"later", 101, 0x4000, 0x1000, false},
		{"beyond the end", 100, 0x4000, 0x1001, false},
		{"elsewhere", 100, 0x6000, 0x1000, false},
	} {
		if got := h.Includes(&order.Event{Kind: order.KindGrowth, Time: test.time, Addr: test.addr, Size: test.size}); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// Without the option the trace has no heap records, and no probes are attached for them.
func TestNoHeapGrowth(t *testing.T) {
	testutil.NeedBPF(t)
	r, _, records := traceRun(t, nil, testutil.Build(t, "heapgrow"))
	if n := len(ofKind(records, trace.KindHeapGrow)); n != 0 {
		t.Errorf("%d growths in the trace", n)
	}
	if n := len(r.tracer.Plan().Memory.Growths); n != 0 {
		t.Errorf("%d calls have probes", n)
	}
}

// HeapFinder finds heaps, and not what only looks like one.
func TestFindHeap(t *testing.T) {
	for i := range process.Machines {
		t.Run(process.Machines[i].ELF.String(), func(t *testing.T) { findHeap(t, &process.Machines[i]) })
	}
}

func findHeap(t *testing.T, m *process.Machine) {
	const (
		rw   = proc.Read | proc.Write
		page = 0x1000
	)
	arenaHeap, word := m.ArenaHeap, m.Word
	at := 4 * arenaHeap
	arena := func(addr, size, accessible uint64) map[uint64]uint64 {
		return map[uint64]uint64{addr: addr + 0x30, addr + 2*word: size, addr + 3*word: accessible}
	}
	for name, test := range map[string]struct {
		maps  []proc.Map
		words map[uint64]uint64
		want  []process.Extent
	}{
		"none": {},
		"brk":  {maps: []proc.Map{{Start: 0x1000, End: 0x5000, Perms: rw, Path: "[heap]"}}, want: []process.Extent{{Start: 0x1000, End: 0x5000}}},
		"brk in pieces": {
			maps: []proc.Map{{Start: 0x1000, End: 0x5000, Perms: rw, Path: "[heap]"}, {Start: 0x5000, End: 0x7000, Perms: rw, Path: "[heap]"}},
			want: []process.Extent{{Start: 0x1000, End: 0x7000}},
		},
		"arena": {
			maps:  []proc.Map{{Start: at, End: at + 0x21000, Perms: rw}, {Start: at + 0x21000, End: at + arenaHeap}},
			words: arena(at, 0x20500, 0x21000), want: []process.Extent{{Start: at, End: at + 0x21000}},
		},
		"two arenas that touch, the first one full": {
			maps: []proc.Map{{Start: at, End: at + arenaHeap + 0x3000, Perms: rw}, {Start: at + arenaHeap + 0x3000, End: at + 2*arenaHeap}},
			words: map[uint64]uint64{
				at: at + 0x30, at + 2*word: arenaHeap, at + 3*word: arenaHeap,
				at + arenaHeap: at + 0x30, at + arenaHeap + 2*word: 0x3000, at + arenaHeap + 3*word: 0x3000,
			},
			want: []process.Extent{{Start: at, End: at + arenaHeap}, {Start: at + arenaHeap, End: at + arenaHeap + 0x3000}},
		},
		"behind something else": {
			maps:  []proc.Map{{Start: at - 0x2000, End: at + 0x21000, Perms: rw}, {Start: at + 0x21000, End: at + arenaHeap}},
			words: arena(at, 0x21000, 0x21000), want: []process.Extent{{Start: at, End: at + 0x21000}},
		},
		"in pieces": {
			maps: []proc.Map{
				{Start: at, End: at + 0x2000, Perms: rw},
				{Start: at + 0x2000, End: at + 0x3000, Perms: rw},
				{Start: at + 0x3000, End: at + 0x4000},
				{Start: at + 0x4000, End: at + arenaHeap},
			},
			words: arena(at, 0x3000, 0x3000), want: []process.Extent{{Start: at, End: at + 0x3000}},
		},
		"program's memory at such an address": {
			maps: []proc.Map{{Start: at, End: at + 0x21000, Perms: rw}, {Start: at + 0x21000, End: at + arenaHeap}},
		},
		"grown meanwhile": {
			maps:  []proc.Map{{Start: at, End: at + 0x21000, Perms: rw}, {Start: at + 0x21000, End: at + arenaHeap}},
			words: arena(at, 0x22000, 0x22000), want: []process.Extent{{Start: at, End: at + 0x21000}},
		},
		"larger than its accessible part": {
			maps:  []proc.Map{{Start: at, End: at + 0x21000, Perms: rw}, {Start: at + 0x21000, End: at + arenaHeap}},
			words: arena(at, 0x21001, 0x21000),
		},
		"larger than a heap can be": {
			maps:  []proc.Map{{Start: at, End: at + 0x21000, Perms: rw}, {Start: at + 0x21000, End: at + arenaHeap}},
			words: arena(at, 0x21000, arenaHeap+page),
		},
		"not reserved": {
			maps:  []proc.Map{{Start: at, End: at + 0x21000, Perms: rw}, {Start: at + 0x21000, End: at + arenaHeap - page}},
			words: arena(at, 0x21000, 0x21000),
		},
		"a file": {
			maps:  []proc.Map{{Start: at, End: at + arenaHeap, Perms: rw, Path: "/a", Inode: 7}},
			words: arena(at, 0x21000, 0x21000),
		},
		"not writable": {
			maps:  []proc.Map{{Start: at, End: at + arenaHeap, Perms: proc.Read}},
			words: arena(at, 0x21000, 0x21000),
		},
	} {
		f := record.HeapFinder{Maps: test.maps, Machine: m, Page: page, Word: func(addr uint64) uint64 { return test.words[addr] }}
		if got := f.Find(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %#x, want %#x", name, got, test.want)
		}
	}
}
