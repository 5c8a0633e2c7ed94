package truth

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// fact is what a format keeps of a call. Parts that it does not keep are zero.
type fact struct {
	op        trace.Op
	function  string
	old, made uint64
	size      uint64
	tid       int32
	time      int64  // ns
	stack     uint64 // hash of the frames
	resource  string // type of the resource; empty: memory, or the format does not contain it
	args      string
}

// projection determines which facts the calls of a trace become in a format, and the fact of a
// call that was read from the format.
type projection struct {
	of   func(p *projector, rec *trace.Record) []fact
	read func(p *projector, rec *trace.Record) fact
}

// projections holds the projections by format. What each leaves out is documented in
// docs/formats, under "what is lost". What it keeps is implemented here a second time,
// independently of the encoder.
var projections = map[string]projection{
	"jsonl":    {(*projector).whole, (*projector).wholeFact},
	"sprtrace": {(*projector).sprtrace, (*projector).rtraceFact},
	"text":     {(*projector).text, (*projector).rtraceFact},
	"mtrc":     {(*projector).mtrc, (*projector).mtrcFact},
	"nettrace": {(*projector).whole, (*projector).wholeFact},
	"swap":     {(*projector).swap, (*projector).swapFact},
}

// projector is the state of a projection of a trace.
type projector struct {
	last  int64             // time of the last call
	live  map[uint64]uint64 // sizes of the blocks that the trace has seen allocated
	types map[uint32]string // of resources
}

func newProjector() *projector {
	return &projector{live: map[uint64]uint64{}, types: map[uint32]string{}}
}

func (p *projector) wholeFact(rec *trace.Record) fact {
	v := eventOf(&rec.Call)
	f := fact{op: v.Op, function: v.Function, old: v.Old, made: v.Made, size: v.Size, tid: rec.TID, time: rec.Time, stack: hashOf(rec.Call.Stack.Frames)}
	if resource := p.types[rec.Call.Resource]; resource != "" && resource != "memory" {
		f.resource, f.args = resource, fmt.Sprint(rec.Call.Args)
	}
	return f
}

// whole keeps everything.
func (p *projector) whole(rec *trace.Record) []fact { return []fact{p.wholeFact(rec)} }

// swapFact returns the fact of a probe of SWAP, whose times are those of the wall clock.
func (p *projector) swapFact(rec *trace.Record) fact {
	f := p.wholeFact(rec)
	f.time = 0
	return f
}

// swapSizes holds the resources that SWAP has messages for. Its value reports whether the size
// is counted, such as how long a lock was waited for, or each call counts as one.
var swapSizes = map[string]bool{
	"": true, "mutex": true, "rwlock": true, "condition": true, "semaphore": true, "fd": false, "fp": false, "thread": false,
}

// swap keeps every call for memory and for the resources that SWAP has messages for. A call
// that only tries to get a lock waits for nothing.
func (p *projector) swap(rec *trace.Record) []fact {
	f := p.swapFact(rec)
	counts, known := swapSizes[f.resource]
	switch {
	case !known:
		return nil
	case f.op == trace.OpFree:
	case !counts:
		f.size = 1
	case strings.HasPrefix(f.function, "pthread_rwlock_try"), slices.Contains([]string{"pthread_mutex_trylock", "mtx_trylock", "sem_trywait"}, f.function):
		f.size = 0
	}
	return []fact{f}
}

// rtraceFact returns the fact of a call of sp-rtrace, binary or text.
func (p *projector) rtraceFact(rec *trace.Record) fact {
	f := p.wholeFact(rec)
	f.tid = 0
	return f
}

// Limits of sp-rtrace.
const (
	rtraceDay    = 24 * 60 * 60 * 1000 // ms
	rtraceFrames = 253
	rtraceSize   = 1<<31 - 1
)

// rtrace projects to sp-rtrace, which has no moves and no threads. at returns the part of a
// time that is kept.
func rtrace(rec *trace.Record, frames int, size uint64, at func(ns int64) int64) []fact {
	c := &rec.Call
	var all []fact
	if c.Op == trace.OpMove {
		all = append(all, fact{op: trace.OpFree, function: c.Function, old: c.OldID, time: at(c.EntryTime), stack: hashOf(nil)})
	}
	f := fact{op: trace.OpAlloc, function: c.Function, made: c.ID, size: min(c.Size, size), time: at(rec.Time)}
	if c.Op == trace.OpFree {
		f.op, f.old, f.made, f.size = trace.OpFree, c.ID, 0, 0
	}
	f.stack = hashOf(c.Stack.Frames[:min(frames, len(c.Stack.Frames))])
	return append(all, f)
}

// sinceMidnight returns a time of day in steps of a millisecond.
func sinceMidnight(ns int64) int64 { return ns / 1e6 % rtraceDay * 1e6 }

// sprtrace projects to packets whose times never go back.
func (p *projector) sprtrace(rec *trace.Record) []fact {
	return rtrace(rec, rtraceFrames, rtraceSize, func(ns int64) int64 {
		p.last = max(p.last, ns)
		return sinceMidnight(p.last)
	})
}

func (p *projector) text(rec *trace.Record) []fact {
	return rtrace(rec, len(rec.Call.Stack.Frames), 1<<64-1, sinceMidnight)
}

// mtrcFact returns the fact of an event of mpatrol, which has no names of functions, no times
// and no stacks.
func (p *projector) mtrcFact(rec *trace.Record) fact {
	f := p.wholeFact(rec)
	f.function, f.time, f.stack = "", 0, 0
	return f
}

// mtrc leaves out events of unknown blocks, and moves that change nothing. pvalloc's blocks are
// whole pages there.
func (p *projector) mtrc(rec *trace.Record) []fact {
	f := p.mtrcFact(rec)
	if rec.Call.Function == "pvalloc" {
		f.size = max((f.size+4095)&^4095, 4096)
	}
	size, known := p.live[f.old]
	switch {
	case f.op == trace.OpMove && f.old == f.made && f.size == size && known:
		return nil
	case f.op == trace.OpFree && !known:
		return nil
	case f.op == trace.OpMove && !known:
		f.op, f.old = trace.OpAlloc, 0
	}
	delete(p.live, f.old)
	if f.op != trace.OpFree {
		p.live[f.made] = f.size
	}
	return []fact{f}
}

// hashOf returns the FNV-1a hash of whole addresses.
func hashOf(frames []uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, f := range frames {
		h = (h ^ f) * 0x100000001b3
	}
	return h
}
