package usage

import "rtrace-bpf/trace"

// latest knows of each thread which block its last call allocated, if it did.
type latest struct {
	blocks map[thread]block
}

type thread struct {
	pid, tid int32
	id       uint64 // Call.Thread
}

type block struct {
	resource uint32
	id       uint64
}

// maxThreads bounds the memory for threads whose last call was an allocation.
// Then all are forgotten: most of them have ended.
const maxThreads = 1 << 16

func threadOf(r *trace.Record) thread { return thread{r.PID, r.TID, r.Call.Thread} }

func (l *latest) allocated(r *trace.Record) {
	if l.blocks == nil || len(l.blocks) >= maxThreads {
		l.blocks = make(map[thread]block)
	}
	l.blocks[threadOf(r)] = block{r.Call.Resource, r.Call.ID}
}

func (l *latest) forget(r *trace.Record) { delete(l.blocks, threadOf(r)) }

// freed says whether a free ends what the last call of its thread allocated.
func (l *latest) freed(r *trace.Record, id uint64) bool {
	t := threadOf(r)
	b, ok := l.blocks[t]
	delete(l.blocks, t)
	return ok && b == block{r.Call.Resource, id}
}

func (l *latest) clear() { l.blocks = nil }
