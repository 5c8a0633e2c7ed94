package truth

import (
	"fmt"

	"rtrace-bpf/trace"
)

// block is a live block and the call that made it.
type block struct {
	event Event
	tid   int32
	seq   uint64 // of the call in the trace
	early bool   // it existed before the trace
}

func (b *block) String() string {
	if b.early {
		return fmt.Sprintf("%s, by thread %d before the trace", b.event, b.tid)
	}
	return fmt.Sprintf("call %d of thread %d: %s", b.seq, b.tid, b.event)
}

// liveness tracks the blocks of a trace in its order, over all threads and CPUs.
type liveness struct {
	blocks map[uint64]block
	most   int
}

// apply applies an event, and returns what is wrong with it, or "".
func (l *liveness) apply(v Event, rec *trace.Record) string {
	if v.Op != trace.OpAlloc {
		if _, ok := l.blocks[v.Old]; !ok {
			return fmt.Sprintf("block %#x was not live", v.Old)
		}
		delete(l.blocks, v.Old)
	}
	if v.Op == trace.OpFree {
		return ""
	}
	if was, ok := l.blocks[v.Made]; ok {
		return fmt.Sprintf("block %#x was live already, since %s", v.Made, &was)
	}
	l.blocks[v.Made] = block{event: v, tid: rec.TID, seq: rec.Call.Seq}
	l.most = max(l.most, len(l.blocks))
	return ""
}
