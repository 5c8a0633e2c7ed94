package live

import "rtrace-bpf/trace"

// Temporary detects temporary blocks: the thread that allocated the block frees
// it, or passes it to realloc, before it allocates another block of the same
// type of resource. Frees of other blocks in between and calls of other threads
// do not matter. In a trace that does not distinguish threads, all calls of a
// process count as calls of one thread. The zero Temporary is ready for use.
type Temporary struct {
	threads map[threadOf]*uint32
	recent  [16]recentThread
	n       uint32
}

// recentThread is a thread that made calls recently; latest is nil for none.
type recentThread struct {
	threadOf
	latest *uint32
}

// threadOf identifies a thread that allocates a type of resource.
type threadOf struct {
	pid, tid int32
	id       uint64 // Call.Thread
	kind     uint32
}

// maxThreads bounds the memory for threads. When it is reached, all threads are
// forgotten; most of them have ended.
const maxThreads = 1 << 16

func (t *Temporary) of(r *trace.Record, kind uint32) *uint32 {
	key := threadOf{r.PID, r.TID, r.Call.Thread, kind}
	recent := &t.recent[(uint64(key.tid)^key.id)%uint64(len(t.recent))]
	if recent.latest != nil && recent.threadOf == key {
		return recent.latest
	}
	p := t.threads[key]
	if p == nil {
		if t.threads == nil || len(t.threads) >= maxThreads {
			t.threads, t.recent = make(map[threadOf]*uint32), [16]recentThread{}
		}
		p = new(uint32)
		t.threads[key] = p
	}
	*recent = recentThread{key, p}
	return p
}

// Allocated processes a call that begins a block of a type of resource, and
// returns the nonzero number to pass to Freed.
func (t *Temporary) Allocated(r *trace.Record, kind uint32) uint32 {
	if t.n++; t.n == 0 {
		t.n = 1
	}
	*t.of(r, kind) = t.n
	return t.n
}

// Freed reports whether a call that ends the block with number n makes it a
// temporary one.
func (t *Temporary) Freed(r *trace.Record, kind uint32, n uint32) bool { return *t.of(r, kind) == n }
