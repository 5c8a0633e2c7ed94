package truth

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// fact is what a format keeps of a call; parts that it does not keep are zero.
type fact struct {
	op        trace.Op
	function  string
	old, made uint64
	size      uint64
	tid       int32
	time      int64  // ns
	stack     uint64 // hash of the frames
	resource  string // type; empty: memory, or the format does not say
	args      string
}

// projection says which facts the calls of a trace become in a format, and which
// fact a call is that was read from it.
type projection struct {
	of   func(p *projector, rec *trace.Record) []fact
	read func(p *projector, rec *trace.Record) fact
}

// projections are those of the formats by name. What each leaves out stands in
// docs/formats, under "what is lost"; what it keeps of a call is written here a
// second time, independently of its encoder.
var projections = map[string]projection{
	"jsonl":    {(*projector).whole, (*projector).wholeFact},
	"sprtrace": {(*projector).sprtrace, (*projector).rtraceFact},
	"text":     {(*projector).text, (*projector).rtraceFact},
	"mtrc":     {(*projector).mtrc, (*projector).mtrcFact},
	"nettrace": {(*projector).whole, (*projector).wholeFact},
	"swap":     {(*projector).swap, (*projector).swapFact},
}

// projector is what projections remember of a trace.
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

// swapFact is a probe of SWAP, whose times are those of the wall clock.
func (p *projector) swapFact(rec *trace.Record) fact {
	f := p.wholeFact(rec)
	f.time = 0
	return f
}

// swapSizes are the resources that SWAP has messages for, by how they are counted
// there: how long a lock was waited for, or one each.
var swapSizes = map[string]bool{
	"": true, "mutex": true, "rwlock": true, "condition": true, "semaphore": true, "fd": false, "fp": false, "thread": false,
}

// swap keeps every call of memory and of the things that it has messages for. One that
// only tries to get a lock waits for nothing.
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

// rtraceFact is a call of sp-rtrace, binary or text.
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

// rtrace has no moves and no threads. at says what is left of a time.
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

// sinceMidnight is a time in steps of a millisecond.
func sinceMidnight(ns int64) int64 { return ns / 1e6 % rtraceDay * 1e6 }

// sprtrace has packets that are never older than the one before.
func (p *projector) sprtrace(rec *trace.Record) []fact {
	return rtrace(rec, rtraceFrames, rtraceSize, func(ns int64) int64 {
		p.last = max(p.last, ns)
		return sinceMidnight(p.last)
	})
}

func (p *projector) text(rec *trace.Record) []fact {
	return rtrace(rec, len(rec.Call.Stack.Frames), 1<<64-1, sinceMidnight)
}

// mtrcFact is an event of mpatrol, which has no names of functions, no times and no
// stacks.
func (p *projector) mtrcFact(rec *trace.Record) fact {
	f := p.wholeFact(rec)
	f.function, f.time, f.stack = "", 0, 0
	return f
}

// mtrc leaves out what happens to blocks that it does not know, and moves that
// change nothing; pvalloc's blocks are whole pages there.
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

// hashOf is FNV-1a over whole addresses.
func hashOf(frames []uint64) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, f := range frames {
		h = (h ^ f) * 0x100000001b3
	}
	return h
}
