package stacks_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/trace"
)

// TestLived compares the sums of lifetimes with those of blocks that are followed one by one.
// Stack 1 + id%3 allocates block id.
func TestLived(t *testing.T) {
	const start = 5_000_000_000
	rnd := rand.New(rand.NewPCG(1, 2))
	b := stacks.NewBuilder(stacks.Options{Locate: func(dst []stacks.Location, r *trace.Record) []stacks.Location {
		return append(dst, stacks.Location{Addr: r.Call.Stack.Frames[0]})
	}})
	var want [4]uint64
	born := make(map[uint64]int64)
	var total, most uint64
	peak := int64(0)
	now := int64(0)
	end := func(id uint64) {
		want[1+id%3] += uint64(now-born[id]) / 1000
		delete(born, id)
		total -= 16
	}
	for range 5000 {
		now += 1000 * rnd.Int64N(1_000_000)
		id := uint64(16 + rnd.IntN(300))
		_, live := born[id]
		var r *trace.Record
		switch what := rnd.IntN(1000); {
		case what == 0:
			r = &trace.Record{Kind: trace.KindExec, PID: 1}
			for id := range born {
				want[1+id%3] += uint64(now-born[id]) / 1000
			}
			clear(born)
			total = 0
			// An exec is no call: its blocks end with the call before it.
			b.Add(&trace.Record{Kind: trace.KindCall, PID: 1, Time: start + now, Call: trace.Call{Op: trace.OpFree, ID: 1}})
		case live && what < 600:
			r = free(id)
			end(id)
		default:
			if live { // a free is missing
				end(id)
			}
			r = alloc(1, "malloc", id, 16, 1+id%3)
			born[id] = now
			if total += 16; total > most {
				most, peak = total, now
			}
		}
		r.Time = start + now
		b.Add(r)
	}
	for id := range born {
		end(id)
	}
	p := b.Profile()
	if len(p.Samples) != 3 {
		t.Fatalf("%d stacks, not 3", len(p.Samples))
	}
	for _, s := range p.Samples {
		n := p.Locations[s.Stack[0]].Addr
		if s.Lived != want[n] {
			t.Errorf("the blocks of stack %d lived for %d µs, not %d", n, s.Lived, want[n])
		}
	}
	if p.PeakTime <= 0 || p.PeakTime > p.Span {
		t.Errorf("peak at %v of %v", p.PeakTime, p.Span)
	}
	if got := p.Span - p.PeakTime; got != time.Duration(now-peak) {
		t.Errorf("the peak was %v before the last call, not %v", got, time.Duration(now-peak))
	}
}
