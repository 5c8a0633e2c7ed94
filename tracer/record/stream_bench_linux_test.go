package record

import (
	"testing"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
)

// BenchmarkStream is the cost of one event on the way from a batch to a record. Each
// allocation has one of 64 stacks, and its block is freed 512 allocations later.
func BenchmarkStream(b *testing.B) {
	const stacks, events, open = 64, 4096, 512
	calls, reallocs := make([]order.Event, 0, events), make([]order.Event, 0, events)
	for i := range uint64(events / 2) {
		time := 10 * i
		alloc := order.Event{Kind: order.KindAlloc, Addr: 0x100000 + i%open*64, Size: 32, Stack: 1 + i%stacks, Time: time, PID: 7, TID: 8}
		calls = append(calls, alloc, order.Event{Kind: order.KindFree, Addr: 0x100000 + (i+1)%open*64, Time: time + 5, PID: 7, TID: 8})
		enter := order.Event{Kind: order.KindMoveEnter, Addr: 0x100000, Time: time, PID: 7, TID: 8}
		reallocs = append(reallocs, enter, order.Event{Kind: order.KindMove, Old: 0x100000, Addr: 0x100000, Size: 64, Time: time + 5, Entry: time, Stack: 1 + i%stacks, PID: 7, TID: 8})
	}
	for _, kind := range []struct {
		name   string
		events []order.Event
	}{{"calls", calls}, {"reallocs", reallocs}} {
		b.Run(kind.name, func(b *testing.B) {
			s := fedStream()
			trackBlocks(s)
			batch := order.Batch{Events: kind.events}
			for i := range uint64(stacks) {
				batch.Stacks = append(batch.Stacks, order.StackDef{Hash: 1 + i, Frames: []uint64{0x1000 + i, 0x2000, 0x3000}, End: object.ProbeStackEndSTACK_COMPLETE})
			}
			work := make([]order.Event, len(kind.events))
			var r trace.Record
			records := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N / len(kind.events) {
				copy(work, kind.events) // the stream owns a batch and may change it
				batch.Events = work
				s.Take(&batch)
				batch.Stacks = nil
				for s.Next(&r) {
					records++
				}
			}
			b.StopTimer()
			if n := b.N / len(kind.events); n > 0 && records == 0 {
				b.Error("no records")
			}
		})
	}
}

func trackBlocks(s *Stream) { s.calls.blocks.blocks = live.NewBlocks() }
