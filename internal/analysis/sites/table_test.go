package sites

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/trace"
)

// place holds the arguments of Table.Add.
type place struct {
	Stack  trace.Stack
	Caller trace.Caller
}

// randomPlace returns one of a few places that differ in one property or
// another.
func randomPlace(random *rand.Rand) place {
	var p place
	for range random.IntN(4) {
		p.Stack.Frames = append(p.Stack.Frames, uint64(random.IntN(3)))
	}
	if random.IntN(2) == 0 {
		for range p.Stack.Frames {
			p.Stack.Names = append(p.Stack.Names, fmt.Sprint("n", random.IntN(2)))
		}
	}
	p.Stack.End = trace.StackEnd(random.IntN(5))
	p.Stack.FramePointer = random.IntN(4) == 0
	if random.IntN(4) == 0 {
		p.Stack.Reason = fmt.Sprint("n", random.IntN(3))
	}
	switch random.IntN(4) {
	case 0:
		p.Caller.Function = fmt.Sprint("n", random.IntN(2))
	case 1:
		p.Caller.File, p.Caller.Line = "n1", uint64(random.IntN(2))
	case 2:
		p.Caller.Line = 1 << 60
	}
	return p
}

// TestTable compares a Table with a map: equal places have equal numbers,
// different places have different ones, and all are returned unchanged.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var (
		table   Table
		names   Names
		numbers = map[string]uint32{}
		places  = map[uint32]place{0: {}}
	)
	for range 30_000 {
		p := randomPlace(random)
		n := table.Add(&p.Stack, &p.Caller, &names)
		key := fmt.Sprintf("%#v", p)
		if want, ok := numbers[key]; ok && n != want {
			t.Fatalf("%+v has the numbers %d and %d", p, want, n)
		} else if !ok {
			if other, taken := places[n]; taken && n != 0 {
				t.Fatalf("%+v and %+v have the number %d", p, other, n)
			}
			numbers[key], places[n] = n, p
		}
	}
	if table.Len() != len(places)-1 {
		t.Errorf("%d numbers, want %d", table.Len(), len(places)-1)
	}
	var (
		frames []uint64
		texts  []string
	)
	for n, want := range places {
		frames, texts = frames[:0], texts[:0]
		var got place
		got.Stack, got.Caller = table.Place(n, &names, &frames, &texts)
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("place %d (-want +got):\n%s", n, d)
		}
	}
}

func TestTableAllocatesNothing(t *testing.T) {
	var (
		table Table
		names Names
	)
	p := place{trace.Stack{Frames: []uint64{1, 2, 3}, Names: []string{"a", "b", "c"}}, trace.Caller{Function: "f", File: "f.c", Line: 9}}
	add := func() { table.Add(&p.Stack, &p.Caller, &names) }
	add()
	if n := testing.AllocsPerRun(100, add); n != 0 {
		t.Errorf("%v allocations for a known place", n)
	}
}

func BenchmarkTable(b *testing.B) {
	var (
		table  Table
		names  Names
		caller trace.Caller
	)
	stacks := make([]trace.Stack, 256)
	for i := range stacks {
		for j := range 10 {
			stacks[i].Frames = append(stacks[i].Frames, 0x55c9757eb000+uint64(i*131+j*17))
			stacks[i].Names = append(stacks[i].Names, fmt.Sprintf("function_%d() from /usr/bin/program", j))
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		table.Add(&stacks[i&255], &caller, &names)
	}
}
