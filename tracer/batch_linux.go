package tracer

// batchEvents is how many events a batch has at most.
const batchEvents = 4096

// batch is a run of events in their final order. Stacks and sides stand in the batch of
// their first use or an earlier one.
type batch struct {
	events []event
	stacks []stackDef
	raws   []rawStack
	acts   []numberedActivity
	calls  []numberedCall
	sides  []side // the addr of a kindSide event counts them from the start of the trace
	err    error  // why the collector ended early
	exited bool   // the process has ended
}

// newBatch returns an empty batch.
func newBatch() *batch { return &batch{events: make([]event, 0, batchEvents)} }

// reset makes the batch empty, to be used again.
func (b *batch) reset() {
	clear(b.raws) // they are large
	*b = batch{
		events: b.events[:0], stacks: b.stacks[:0], raws: b.raws[:0], acts: b.acts[:0], calls: b.calls[:0], sides: b.sides[:0],
	}
}

// empty reports whether the batch has nothing to pass on.
func (b *batch) empty() bool {
	return len(b.events) == 0 && len(b.stacks) == 0 && len(b.raws) == 0 && len(b.acts) == 0 && len(b.calls) == 0 && len(b.sides) == 0
}
