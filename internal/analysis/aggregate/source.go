package aggregate

import (
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

// source returns the number of the source of a call at a site.
func (c *callSites) source(site uint32, r *trace.Record) uint32 {
	thread, ok := c.threads.Number(r)
	if !ok {
		thread = otherThreads
	}
	if n, ok := c.find(site, thread); ok {
		return n
	}
	s := c.at(site)
	if len(s.sources) >= threadsPerSite {
		thread = otherThreads
		if n, ok := c.find(site, thread); ok {
			return n
		}
	}
	n := uint32(c.sources.Add(source{site: site, thread: thread}))
	s.sources = append(s.sources, n)
	return n
}

// find returns the number of the source of a thread at a site.
func (c *callSites) find(site, thread uint32) (n uint32, ok bool) {
	for _, n := range c.at(site).sources {
		if c.sources.At(uint64(n)).thread == thread {
			return n, true
		}
	}
	return 0, false
}

// threadsOf returns the threads of a site.
func (c *callSites) threadsOf(s *site) []Thread {
	out := make([]Thread, 0, len(s.sources))
	for _, n := range s.sources {
		x := c.sources.At(uint64(n))
		t := Thread{Allocated: x.allocated, Live: x.live}
		if x.thread == otherThreads {
			t.Others = true
		} else {
			of := c.threads.At(x.thread)
			t.TID, t.Thread = of.TID, of.ID
		}
		out = append(out, t)
	}
	return out
}
