package heapmap_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/trace"
)

// base is the start of the memory of the random traces, space its size.
const (
	base  = 0x7fff_ffff_f000
	space = 1 << 14
)

// random returns a trace of n calls. Blocks do not overlap, except those that
// begin where one is live.
func random(rng *rand.Rand, n int) []*trace.Record {
	var all []*trace.Record
	add := func(op trace.Op, id, old, size uint64) {
		all = append(all, &trace.Record{
			Kind: trace.KindCall, TID: int32(rng.IntN(3)),
			Call: trace.Call{Op: op, ID: id, OldID: old, Size: size, Function: "malloc", Caller: trace.Caller{Function: fmt.Sprint("f", rng.IntN(9))}},
		})
	}
	slot := func() uint64 { return base + 256*rng.Uint64N(space/256) }
	for range n {
		switch rng.IntN(9) {
		case 0, 1, 2, 3:
			add(trace.OpAlloc, slot(), 0, rng.Uint64N(257))
		case 4, 5, 6:
			add(trace.OpFree, slot(), 0, 0)
		case 7:
			add(trace.OpMove, slot(), slot(), rng.Uint64N(257))
		case 8:
			if rng.IntN(4) > 0 {
				continue
			}
			r := &trace.Record{Kind: trace.KindHeapGrow}
			r.HeapGrow = trace.HeapGrow{Address: base - 4096 + 512*rng.Uint64N(40), Size: 1 + rng.Uint64N(2048), Internal: rng.IntN(3) == 0}
			all = append(all, r)
		}
	}
	return all
}

// model is the state of each byte after each event.
type model struct {
	bytes  [][]heapmap.Cell // per event, from base-4096
	blocks []map[uint64]uint64
	peak   int
}

const origin, length = base - 4096, 4096 + space + 8192

func naive(records []*trace.Record) *model {
	m := &model{bytes: [][]heapmap.Cell{make([]heapmap.Cell, length)}, blocks: []map[uint64]uint64{{}}}
	now := make([]heapmap.Cell, length)
	live := map[uint64]uint64{}
	var most uint64
	paint := func(at, size uint64, c heapmap.Cell) {
		for i := at - origin; i < at-origin+size; i++ {
			if c == heapmap.Freed || c > now[i] || c == heapmap.Heap && now[i] == heapmap.Unknown {
				now[i] = c
			}
		}
	}
	free := func(id uint64) {
		if size, ok := live[id]; ok {
			paint(id, max(1, size), heapmap.Freed)
			delete(live, id)
		}
	}
	for _, r := range records {
		c := &r.Call
		switch {
		case r.Kind == trace.KindHeapGrow && r.HeapGrow.Internal:
			paint(r.HeapGrow.Address, r.HeapGrow.Size, heapmap.Internal)
		case r.Kind == trace.KindHeapGrow:
			paint(r.HeapGrow.Address, r.HeapGrow.Size, heapmap.Heap)
		case c.Op == trace.OpFree:
			free(c.ID)
		default:
			free(c.OldID)
			free(c.ID)
			live[c.ID] = c.Size
			paint(c.ID, max(1, c.Size), heapmap.Full)
		}
		if r.Kind == trace.KindHeapGrow { // belongs to the previous event
			m.bytes[len(m.bytes)-1] = slices.Clone(now)
			continue
		}
		blocks, sum := map[uint64]uint64{}, uint64(0)
		for id, size := range live {
			blocks[id] = size
			sum += size
		}
		m.bytes, m.blocks = append(m.bytes, slices.Clone(now)), append(m.blocks, blocks)
		if sum > most {
			most, m.peak = sum, len(m.bytes)-1
		}
	}
	return m
}

// cells computes the cells of a grid from its bytes.
func (m *model) cells(g heapmap.Grid, event int) []heapmap.Cell {
	out := make([]heapmap.Cell, g.Cells)
	for i := range out {
		var used, eighths uint64
		for j := range g.CellBytes {
			// In unsigned arithmetic, addresses before origin are far after it.
			at := g.Base + uint64(i)*g.CellBytes + j - origin
			if at >= length {
				continue
			}
			b := m.bytes[event][at]
			if b == heapmap.Full {
				used++
				continue
			}
			out[i] = max(out[i], b)
		}
		if eighths = (used*8 + g.CellBytes - 1) / g.CellBytes; used > 0 {
			out[i] = heapmap.Used + heapmap.Cell(eighths) - 1
		}
	}
	return out
}

func (m *model) usage(event int) (u heapmap.Usage) {
	for _, size := range m.blocks[event] {
		u.Blocks++
		u.Bytes += size
	}
	run := uint64(0)
	for _, b := range m.bytes[event] {
		// The model does not know that internal memory within the heap is free;
		// the traces of this test have none.
		if b != heapmap.Heap && b != heapmap.Freed {
			run = 0
			continue
		}
		run++
		u.Free++
		u.LargestFree = max(u.LargestFree, run)
	}
	return u
}

// Every cell of any grid agrees with a model of each byte: at all events if all
// blocks are kept, otherwise at the steps, at the peak, at Options.At and at
// the end.
func TestPaintAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 2))
		records := random(rng, 20+rng.IntN(300))
		want := naive(records)
		last := len(want.bytes) - 1
		for _, limit := range []int{0, 3, 10} {
			at := rng.IntN(last + 1)
			m := heapmap.New(heapmap.Options{Limit: limit, At: uint64(at)})
			for _, r := range records {
				m.Add(r)
			}
			if m.Events() != uint64(last) || m.Peak().Event != uint64(want.peak) || limit == 0 && m.Step() != 1 {
				t.Fatalf("seed %d: %d events, peak %+v, step %d; want %d, %d, 1", seed, m.Events(), m.Peak(), m.Step(), last, want.peak)
			}
			events := []int{0, at, want.peak, last}
			for e := 0; e <= last; e += int(m.Step()) {
				events = append(events, e)
			}
			for _, event := range events {
				g := heapmap.Grid{Base: origin - 64 + rng.Uint64N(2*4096), CellBytes: 1 << rng.IntN(9), Cells: 1 + rng.IntN(300)}
				if diff := cmp.Diff(want.cells(g, event), m.Paint(g, uint64(event))); diff != "" {
					t.Fatalf("seed %d, limit %d, step %d, event %d of %d, grid %+v (-want +got)\n%s", seed, limit, m.Step(), event, last, g, diff)
				}
			}
		}
	}
}

// The usage of regions agrees with the model, in one region and in two.
func TestUsageAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		records := slices.DeleteFunc(random(rng, 20+rng.IntN(300)), func(r *trace.Record) bool { return r.HeapGrow.Internal })
		want := naive(records)
		m := heapmap.New(heapmap.Options{})
		for _, r := range records {
			m.Add(r)
		}
		whole := []heapmap.Region{{Start: origin, Last: origin + length - 1}}
		halves := []heapmap.Region{{Start: origin, Last: origin + 9999}, {Start: origin + 10000, Last: origin + length - 1}}
		for event := range want.bytes {
			u := want.usage(event)
			if got := m.Usage(whole, uint64(event))[0]; got != u {
				t.Fatalf("seed %d, event %d: %+v, want %+v", seed, event, got, u)
			}
			h := m.Usage(halves, uint64(event))
			if h[0].Blocks+h[1].Blocks != u.Blocks || h[0].Bytes+h[1].Bytes != u.Bytes || h[0].Free+h[1].Free != u.Free {
				t.Fatalf("seed %d, event %d: %+v, together %+v", seed, event, h, u)
			}
		}
	}
}

func TestRegions(t *testing.T) {
	type at struct{ address, size uint64 }
	for _, tt := range []struct {
		name  string
		limit int
		has   []at
		want  []heapmap.Region
	}{
		{"nothing", 9, nil, nil},
		{"one byte is a page", 9, []at{{0x5555_0000_0010, 1}}, []heapmap.Region{{0x5555_0000_0000, 0x5555_0000_0fff}}},
		{
			"heap and mappings", 9,
			[]at{{0x7f00_0000_0010, 0x100000}, {0x5555_0000_0010, 10}, {0x5555_0000_8000, 10}, {0x7f80_0000_0000, 1}},
			[]heapmap.Region{
				{0x5555_0000_0000, 0x5555_0000_8fff}, {0x7f00_0000_0000, 0x7f00_0010_0fff}, {0x7f80_0000_0000, 0x7f80_0000_0fff},
			},
		},
		{"a gap of 256 KiB", 9, []at{{0x1000, 1}, {0x42000, 1}}, []heapmap.Region{{0x1000, 0x42fff}}},
		{"a larger one", 9, []at{{0x1000, 1}, {0x43000, 1}}, []heapmap.Region{{0x1000, 0x1fff}, {0x43000, 0x43fff}}},
		{"too many", 1, []at{{0x1000, 1}, {0x43000, 1}}, []heapmap.Region{{0x1000, 0x43fff}}},
		{
			"ends of the address space", 9,
			[]at{{0, 1}, {^uint64(0) - 15, 1 << 40}},
			[]heapmap.Region{{0, 0xfff}, {^uint64(0xfff), ^uint64(0)}},
		},
		{"more than can be drawn", 9, []at{{0x1000, 1 << 63}}, []heapmap.Region{{0x1000, 0x1000 + 1<<52 - 1}}},
	} {
		m := heapmap.New(heapmap.Options{})
		for _, a := range tt.has {
			m.Add(&trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: a.address, Size: a.size}})
		}
		if diff := cmp.Diff(tt.want, m.Regions(tt.limit)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
		for _, r := range m.Regions(tt.limit) {
			g := heapmap.Fit(r, 100)
			if cells := m.Paint(g, 1000); len(cells) > 100 || slices.Max(cells) < heapmap.Used {
				t.Errorf("%s: %d cells, the highest %v", tt.name, len(cells), slices.Max(cells))
			}
			m.Usage([]heapmap.Region{r}, 1000)
		}
	}
}

// An exec starts a new address space.
func TestExec(t *testing.T) {
	m := heapmap.New(heapmap.Options{})
	alloc := func(id, size uint64) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: id, Size: size, Function: "malloc"}}
	}
	for _, r := range []*trace.Record{
		alloc(0x1000, 100),
		{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: 0x8000, Size: 4096}},
		{Kind: trace.KindExec},
		alloc(0x20000, 16),
		{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpFree, ID: 0x1000}},
	} {
		m.Add(r)
	}
	if m.First() != 1 || m.Events() != 3 || m.Peak() != (heapmap.Level{Event: 2, Blocks: 1, Bytes: 16}) {
		t.Errorf("first %d, events %d, peak %+v", m.First(), m.Events(), m.Peak())
	}
	want := []heapmap.Region{{0x20000, 0x20fff}}
	if diff := cmp.Diff(want, m.Regions(9)); diff != "" {
		t.Errorf("regions (-want +got)\n%s", diff)
	}
}
