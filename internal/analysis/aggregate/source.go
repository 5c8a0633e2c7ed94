package aggregate

import (
	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Thread is the blocks that a thread allocated at a call site.
type Thread struct {
	TID int32
	// Thread is the thread's id, or the format's substitute for it
	// (Call.Thread).
	Thread uint64
	// Others marks the sum of all threads after the first 16.
	Others    bool
	Allocated live.Amount
	Live      live.Amount
}

// source is the blocks that a thread allocated at a site.
type source struct {
	site, thread    uint32
	allocated, live live.Amount
}

// Limits of threads.
const (
	maxThreads     = 1 << 16 // of the trace
	threadsPerSite = 16
)

// otherThreads is the number of all threads beyond the limits.
const otherThreads = ^uint32(0)

// threads numbers the threads that allocate.
type threads struct {
	all     []thread
	numbers map[threadKey]uint32
	last    threadKey // of the last call
	latest  uint32    // 1 + the number of last
}

type thread struct {
	threadKey
	tid int32
}

type threadKey struct {
	pid    int32
	thread uint64
}

// of returns the number of the thread that made a call.
func (t *threads) of(r *trace.Record) uint32 {
	key := threadKey{r.PID, blocks.Thread(r)}
	if t.latest != 0 && t.last == key {
		return t.latest - 1
	}
	n, ok := t.numbers[key]
	if !ok {
		if len(t.all) >= maxThreads {
			return otherThreads
		}
		n = uint32(len(t.all))
		t.all = append(t.all, thread{key, r.TID})
		t.numbers[key] = n
	}
	t.last, t.latest = key, n+1
	return n
}

// source returns the number of the source of a call at a site.
func (e *Engine) source(site uint32, r *trace.Record) uint32 {
	thread := e.threads.of(r)
	if n, ok := e.find(site, thread); ok {
		return n
	}
	if len(e.sites.At(uint64(site)).sources) >= threadsPerSite {
		thread = otherThreads
		if n, ok := e.find(site, thread); ok {
			return n
		}
	}
	n := uint32(e.sources.Len())
	e.sources.Add(source{site: site, thread: thread})
	e.sites.At(uint64(site)).sources = append(e.sites.At(uint64(site)).sources, n)
	return n
}

// find returns the number of the source of a thread at a site.
func (e *Engine) find(site, thread uint32) (n uint32, ok bool) {
	for _, n := range e.sites.At(uint64(site)).sources {
		if e.sources.At(uint64(n)).thread == thread {
			return n, true
		}
	}
	return 0, false
}

// threadsOf returns the threads of a site.
func (e *Engine) threadsOf(s *site) []Thread {
	out := make([]Thread, 0, len(s.sources))
	for _, n := range s.sources {
		x := e.sources.At(uint64(n))
		t := Thread{Allocated: x.allocated, Live: x.live}
		if x.thread == otherThreads {
			t.Others = true
		} else {
			of := &e.threads.all[x.thread]
			t.TID, t.Thread = of.tid, of.thread
		}
		out = append(out, t)
	}
	return out
}
