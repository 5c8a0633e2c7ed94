package budget

import (
	"slices"
	"time"
)

// costs remembers what the last windows cost.
type costs struct {
	begun  Reading       // when the window opened
	closed Reading       // when the probes of the window before were detached
	within time.Duration // Hits of the windows since then, up to their ends
	ended  time.Duration // when it ended

	rates  []float64       // processors, while a window was open
	parts  []float64       // of the processor time that the process used meanwhile
	parted Reading         // hits, processor time and time of windows that are not yet in parts
	fixes  []time.Duration // for attaching, detaching, and hits meanwhile
	moves  []time.Duration // how long attaching and detaching took
}

// known reports whether there was a window.
func (c *costs) known() bool { return len(c.rates) > 0 }

// open notes that a window has opened.
func (c *costs) open(r Reading) { c.begun = r }

// lasted returns how long the window is open.
func (c *costs) lasted(r Reading) time.Duration { return r.Time - c.begun.Time }

// leastCPU is the processor time from which the part that hits take is known.
const leastCPU = 2 * time.Millisecond

// measure notes what a window has cost up to its end. usual is how many processors the
// process uses.
func (c *costs) measure(r Reading, usual float64) {
	hits := r.Hits - c.begun.Hits
	c.within += hits
	c.ended = r.Time
	// Hits cannot have cost more than the process has used.
	used := r.CPU - c.begun.CPU
	if used > 0 {
		hits = min(hits, used)
	}
	p := &c.parted
	p.Hits, p.CPU, p.Time = p.Hits+hits, p.CPU+used, p.Time+c.lasted(r)
	// A process that waited for a processor shows nothing of what it costs.
	if p.CPU > 0 && (p.CPU >= leastCPU || float64(p.CPU) > usual*float64(p.Time)/2) {
		c.parts = last(append(c.parts, float64(p.Hits)/float64(p.CPU)))
		*p = Reading{}
	}
	c.rates = last(append(c.rates, float64(hits)/float64(max(c.lasted(r), time.Microsecond))))
}

// close notes that the probes of a window are detached.
func (c *costs) close(r Reading) {
	fixed := r.added() - c.closed.added() - c.within
	c.fixes = last(append(c.fixes, fixed))
	c.moves = last(append(c.moves, r.Time-c.ended))
	c.closed, c.within = r, 0
}

// last returns the values that are remembered.
func last[E any](all []E) []E { return all[max(0, len(all)-rememberLast):] }

// rate returns how many processors an open window costs, with care: the most of the last
// windows, or as large a part of usual, the processors that the process uses.
func (c *costs) rate(usual float64) float64 {
	part := 1.0 // not known
	if len(c.parts) > 0 {
		part = slices.Max(c.parts)
	}
	return max(1e-9, part*usual, slices.Max(append([]float64{0}, c.rates...)))
}

// fixed returns what a window costs in addition, likewise.
func (c *costs) fixed() time.Duration { return most(c.fixes) }

// moving returns how long detaching takes, likewise.
func (c *costs) moving() time.Duration { return most(c.moves) }

func most(all []time.Duration) (n time.Duration) {
	for _, d := range all {
		n = max(n, d)
	}
	return n
}
