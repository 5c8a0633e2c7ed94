package budget

import "time"

// costs remembers what the last windows cost.
type costs struct {
	begun  Reading       // when the window opened
	closed Reading       // when the probes of the window before were detached
	within time.Duration // Hits of the windows since then, up to their ends
	ended  time.Duration // when it ended

	rates []float64       // processors, while a window was open
	fixes []time.Duration // for attaching, detaching, and hits meanwhile
	moves []time.Duration // how long attaching and detaching took
}

// known reports whether there was a window.
func (c *costs) known() bool { return len(c.rates) > 0 }

// open notes that a window has opened.
func (c *costs) open(r Reading) { c.begun = r }

// lasted returns how long the window is open.
func (c *costs) lasted(r Reading) time.Duration { return r.Time - c.begun.Time }

// measure notes what a window has cost up to its end.
func (c *costs) measure(r Reading) {
	hits := r.Hits - c.begun.Hits
	c.within += hits
	c.ended = r.Time
	// Hits cannot have cost more than the process has used.
	if used := r.CPU - c.begun.CPU; used > 0 {
		hits = min(hits, used)
	}
	c.rates = last(append(c.rates, float64(hits)/float64(max(c.lasted(r), time.Microsecond))))
}

// close notes that the probes of a window are detached.
func (c *costs) close(r Reading) {
	c.fixes = last(append(c.fixes, r.added()-c.closed.added()-c.within))
	c.moves = last(append(c.moves, r.Time-c.ended))
	c.closed, c.within = r, 0
}

// last returns the values that are remembered.
func last[E any](all []E) []E { return all[max(0, len(all)-rememberLast):] }

// rate returns how many processors an open window costs, with care: the most of the last
// windows.
func (c *costs) rate() (most float64) {
	for _, r := range c.rates {
		most = max(most, r)
	}
	return max(most, 1e-9)
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
