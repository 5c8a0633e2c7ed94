package collector

import (
	"sync/atomic"
	"time"

	"rtrace-bpf/tracer/order"
)

// batchQueue is how many batches wait for the reader of records. Further events stay in
// the rings; when those are full, the programs count losses.
const batchQueue = 32

// outlet brings events and sides into one order, and passes them on in batches.
type outlet struct {
	merger order.Merger // has a queue for each ring, and after them one for sides
	next   *order.Batch // being filled; nil if there is none
	sides  uint64       // number of sides up to now
	out    chan *order.Batch
	free   chan *order.Batch // batches to use again
	passed atomic.Uint64     // the last bound whose events are in out, or have been taken
	// waits is called each millisecond while the reader is slow. It may add sides. It is nil for
	// nothing.
	waits func()
}

// newOutlet returns an outlet with queues for a number of rings.
func newOutlet(rings int) *outlet {
	return &outlet{
		merger: order.Merger{Queues: make([]order.Queue, rings+1)},
		out:    make(chan *order.Batch, batchQueue), free: make(chan *order.Batch, batchQueue),
	}
}

// queue returns the queue of a ring, by number.
func (o *outlet) queue(ring int) *order.Queue { return &o.merger.Queues[ring] }

// batch returns the batch that is being filled.
func (o *outlet) batch() *order.Batch {
	if o.next == nil {
		o.next = o.empty()
	}
	return o.next
}

// empty returns an empty batch.
func (o *outlet) empty() *order.Batch {
	select {
	case b := <-o.free:
		b.Reset()
		return b
	default:
		return order.NewBatch()
	}
}

// keep moves the contents of an intake, except the events, to the next batch.
func (o *outlet) keep(in *order.Intake) {
	b := o.batch()
	b.Stacks = append(b.Stacks, in.Stacks...)
	b.Raws = append(b.Raws, in.Raws...)
	b.Acts = append(b.Acts, in.Activities...)
	b.Calls = append(b.Calls, in.Calls...)
	in.Stacks, in.Raws, in.Activities, in.Calls = in.Stacks[:0], in.Raws[:0], in.Activities[:0], in.Calls[:0]
}

// addSide gives a side its place in the order.
func (o *outlet) addSide(s *order.Side) {
	b := o.batch()
	b.Sides = append(b.Sides, *s)
	o.merger.Queues[len(o.merger.Queues)-1].Push(&order.Event{
		Kind: order.KindSide, Time: s.Time, Addr: o.sides, PID: s.PID, TID: s.TID, Function: uint16(s.Kind),
	})
	o.sides++
}

// pass sends the events up to bound. It waits if the reader is slow.
func (o *outlet) pass(bound uint64) {
	for more := true; more; {
		b := o.batch()
		o.next = nil
		b.Events, more = o.merger.Merge(b.Events, bound, order.BatchEvents-len(b.Events))
		if b.Empty() {
			o.next = b
			break
		}
		o.send(b)
	}
	o.merger.Compact()
	o.passed.Store(bound)
}

// send sends a batch, and waits until the reader has room for it.
func (o *outlet) send(b *order.Batch) {
	select {
	case o.out <- b:
		return
	default:
	}
	again := time.NewTicker(pollShortest)
	defer again.Stop()
	for {
		select {
		case o.out <- b:
			return
		case <-again.C:
			if o.waits != nil {
				o.waits()
			}
		}
	}
}

// takeLate returns the number of late events since it was last called.
func (o *outlet) takeLate() uint64 {
	n := o.merger.Late
	o.merger.Late = 0
	return n
}

// last sends a batch without events, for the end of the recording.
func (o *outlet) last(exited bool, err error) {
	b := o.empty()
	b.Exited, b.Err = exited, err
	o.out <- b
}
