package aggregate

import "rtrace-bpf/trace"

// Keeper keeps what an Engine does not need of the calls whose blocks are live, so that a
// command that prints these calls needs no table of live blocks of its own. The Engine calls
// its methods from Add, with the record that Add got.
type Keeper interface {
	// Began is called for a call that begins a block. The number of the block is
	// not that of another one that has begun and not ended; numbers are reused.
	Began(block uint64, site int, r *trace.Record)
	// Ended is called when a block has ended. r is the call that freed it, or nil
	// if it ended in another way, or if it was unknown and may be another block.
	Ended(block uint64, r *trace.Record)
	// Sampled is called for an allocation of a resource of which the trace has only some.
	// Its block counts as live until exec.
	Sampled(r *trace.Record)
}

// Keep sets the Keeper of an Engine, before the first record.
func (e *Engine) Keep(k Keeper) { e.keeper = k }

// Unknown reports whether a block that a Keeper keeps is unknown, as [live.Blocks]
// defines it.
func (e *Engine) Unknown(block uint64) bool { return e.lives.At(block).source&unknownLife != 0 }

// take ends the life of a block, which r has freed if it is not nil.
func (e *Engine) take(block uint64, r *trace.Record) life {
	if e.keeper != nil {
		e.keeper.Ended(block, r)
	}
	return e.lives.Take(block)
}
