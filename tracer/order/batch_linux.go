package order

// BatchEvents is how many events a batch has at most.
const BatchEvents = 4096

// Batch is a run of events in their final order. Stacks and sides stand in the batch of
// their first use or an earlier one.
type Batch struct {
	Events []Event
	Stacks []StackDef
	Raws   []RawStack
	Acts   []NumberedActivity
	Calls  []NumberedCall
	Sides  []Side // the addr of a kindSide event counts them from the start of the trace
	Err    error  // why the collector ended early
	Exited bool   // the process has ended
}

// NewBatch returns an empty batch.
func NewBatch() *Batch { return &Batch{Events: make([]Event, 0, BatchEvents)} }

// Reset makes the batch empty, to be used again.
func (b *Batch) Reset() {
	clear(b.Raws) // they are large
	*b = Batch{
		Events: b.Events[:0], Stacks: b.Stacks[:0], Raws: b.Raws[:0], Acts: b.Acts[:0], Calls: b.Calls[:0], Sides: b.Sides[:0],
	}
}

// Empty reports whether the batch has nothing to pass on.
func (b *Batch) Empty() bool {
	return len(b.Events) == 0 && len(b.Stacks) == 0 && len(b.Raws) == 0 && len(b.Acts) == 0 && len(b.Calls) == 0 && len(b.Sides) == 0
}
