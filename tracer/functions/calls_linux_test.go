package functions

import (
	"fmt"
	"slices"
	"testing"
)

// steps plays events of threads and writes down the results.
type steps struct {
	calls *Calls
	lines []string
}

func (s *steps) enter(tid uint32, x *site, slot, caller uint64) {
	e := Event{Kind: Entered, TID: tid, site: x, Function: x.function, Slot: slot, Caller: caller}
	missed := s.calls.Enter(&e)
	s.lines = append(s.lines, fmt.Sprintf("%d enter %s from %#x, %d missed", tid, x.function.Symbol, e.Caller, missed))
}

func (s *steps) leave(tid uint32, slot uint64) {
	e := Event{Kind: Left, TID: tid, site: &site{}, Slot: slot}
	var left string
	missed := s.calls.Leave(&e, func(e *Event) { left += fmt.Sprintf(" %s to %#x", e.Function.Symbol, e.Caller) })
	s.lines = append(s.lines, fmt.Sprintf("%d leave%s, %d missed", tid, left, missed))
}

func TestCalls(t *testing.T) {
	named := func(name string, x site) *site {
		x.function = &Function{Place: Place{Symbol: name}, Result: 'd'}
		return &x
	}
	f, g, jumper, stubbed := named("f", site{}), named("g", site{}), named("jumper", site{jumps: true}), named("stubbed", site{stub: true})
	s := &steps{calls: NewCalls(4096)}
	s.leave(1, 500) // from before the recording
	s.enter(1, f, 1000, 0x10)
	s.enter(1, f, 900, 0x20)
	s.enter(2, g, 950, 0x30) // of another thread
	s.leave(1, 900)
	s.leave(1, 1000)
	s.leave(2, 950)
	s.enter(1, f, 1000, 0x10) // these three are left by longjmp
	s.enter(1, g, 900, 0x11)
	s.enter(1, g, 800, 0x12)
	s.enter(1, g, 950, 0x13)
	s.leave(1, 1000)
	s.enter(1, f, 1000, 0x10)
	s.enter(1, g, 1000, 0x10) // at the same place and from the same call: f does not jump
	s.leave(1, 1000)
	s.enter(1, jumper, 1000, 0x10)
	s.enter(1, g, 1000, 0x10)
	s.leave(1, 1000)
	s.enter(1, jumper, 1000, 0x10)
	s.enter(1, g, 1000, 0x15) // from another call
	s.leave(1, 1000)
	s.enter(1, stubbed, 1000, 0x10)
	s.enter(1, g, 1000, 0x7000) // the stub
	s.leave(1, 1000)
	s.leave(1, 1000) // the return probe's
	s.enter(1, f, 1000, 0x10)
	s.calls.Forget(1)
	s.enter(1, f, 2000, 0x10)
	s.calls.Clear()
	s.leave(1, 2000)
	want := []string{
		"1 leave, 0 missed",
		"1 enter f from 0x10, 0 missed",
		"1 enter f from 0x20, 0 missed",
		"2 enter g from 0x30, 0 missed",
		"1 leave f to 0x20, 0 missed",
		"1 leave f to 0x10, 0 missed",
		"2 leave g to 0x30, 0 missed",
		"1 enter f from 0x10, 0 missed",
		"1 enter g from 0x11, 0 missed",
		"1 enter g from 0x12, 0 missed",
		"1 enter g from 0x13, 2 missed",
		"1 leave f to 0x10, 1 missed",
		"1 enter f from 0x10, 0 missed",
		"1 enter g from 0x10, 1 missed",
		"1 leave g to 0x10, 0 missed",
		"1 enter jumper from 0x10, 0 missed",
		"1 enter g from 0x10, 0 missed",
		"1 leave g to 0x10 jumper to 0x10, 0 missed",
		"1 enter jumper from 0x10, 0 missed",
		"1 enter g from 0x15, 1 missed",
		"1 leave g to 0x15, 0 missed",
		"1 enter stubbed from 0x10, 0 missed",
		"1 enter g from 0x10, 0 missed",
		"1 leave g to 0x10 stubbed to 0x10, 0 missed",
		"1 leave, 0 missed",
		"1 enter f from 0x10, 0 missed",
		"1 enter f from 0x10, 0 missed",
		"1 leave, 0 missed",
	}
	for i := range max(len(want), len(s.lines)) {
		if i >= len(want) || i >= len(s.lines) || want[i] != s.lines[i] {
			t.Fatalf("step %d of\n%q, want\n%q", i, s.lines, want)
		}
	}
	if !slices.Equal(want, s.lines) || len(s.calls.threads) != 0 {
		t.Errorf("threads left: %v", s.calls.threads)
	}
}
