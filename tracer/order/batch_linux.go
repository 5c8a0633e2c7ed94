package order

// BatchEvents is the capacity of a batch, in events.
const BatchEvents = 4096

// Batch is a run of events in their final order. The stacks and sides that the events
// refer to are in the same batch or an earlier one.
type Batch struct {
	Events []Event
	Stacks []StackDef
	Raws   []RawStack
	Acts   []NumberedActivity
	Calls  []NumberedCall
	Sides  []Side // the Addr of a KindSide event counts them from the start of the trace
	Err    error  // why the collector ended early
	Exited bool   // the process has ended
}

// NewBatch returns an empty batch.
func NewBatch() *Batch { return &Batch{Events: make([]Event, 0, BatchEvents)} }

// Reset empties the batch and keeps its memory for the next use.
func (b *Batch) Reset() {
	clear(b.Raws) // they are large
	*b = Batch{
		Events: b.Events[:0], Stacks: b.Stacks[:0], Raws: b.Raws[:0], Acts: b.Acts[:0], Calls: b.Calls[:0], Sides: b.Sides[:0],
	}
}

// Empty reports whether the batch contains nothing to pass on. Err and Exited do not
// count.
func (b *Batch) Empty() bool {
	return len(b.Events) == 0 && len(b.Stacks) == 0 && len(b.Raws) == 0 && len(b.Acts) == 0 && len(b.Calls) == 0 && len(b.Sides) == 0
}
