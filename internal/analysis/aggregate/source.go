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
	site            uint32
	allocated, live live.Amount
}

// sourceOf is a source of a site with its thread, so that a site finds the source of a call
// without a look at the others.
type sourceOf struct{ thread, source uint32 }

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
	s := c.at(site)
	if n, ok := s.find(thread); ok {
		return n
	}
	if len(s.sources) >= threadsPerSite {
		thread = otherThreads
		if n, ok := s.find(thread); ok {
			return n
		}
	}
	n := uint32(c.sources.Add(source{site: site}))
	s.sources = append(s.sources, sourceOf{thread, n})
	return n
}

// find returns the number of the source of a thread.
func (s *site) find(thread uint32) (n uint32, ok bool) {
	for _, x := range s.sources {
		if x.thread == thread {
			return x.source, true
		}
	}
	return 0, false
}

// threadsOf returns the threads of a site.
func (c *callSites) threadsOf(s *site) []Thread {
	out := make([]Thread, 0, len(s.sources))
	for _, own := range s.sources {
		x := c.sources.At(uint64(own.source))
		t := Thread{Allocated: x.allocated, Live: x.live}
		if own.thread == otherThreads {
			t.Others = true
		} else {
			of := c.threads.At(own.thread)
			t.TID, t.Thread = of.TID, of.ID
		}
		out = append(out, t)
	}
	return out
}
