package main

import (
	"fmt"
	"time"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
)

// callCost is what a recorded call costs the process, of its processor time: half of
// what a pair of malloc and free does (docs/performance.md). Other machines differ,
// and named C++ operators cost more.
const callCost = 650 * time.Nanosecond

// dearPace is the part of a processor above which the cost of tracing is told.
const dearPace = 0.1

// pace is how many calls a process makes, and what was said of that.
type pace struct {
	calls uint64
	at    time.Time
	told  float64 // the highest rate that was told
}

// rate takes over how many calls there have been until now, and returns how many
// a second there were since it was last called. told says whether the user has to
// know: tracing them costs much, and twice as much as was told before.
func (p *pace) rate(calls uint64, now time.Time) (rate float64, tell bool) {
	passed := now.Sub(p.at)
	if p.at.IsZero() || passed <= 0 {
		p.calls, p.at = calls, now
		return 0, false
	}
	rate = float64(calls-p.calls) / passed.Seconds()
	p.calls, p.at = calls, now
	if cost(rate) < dearPace || rate < 2*p.told {
		return rate, false
	}
	p.told = rate
	return rate, true
}

// cost is what tracing calls at a rate costs, in processors.
func cost(rate float64) float64 { return rate * callCost.Seconds() }

// watch tells the user what tracing costs the process, if that is much.
func (x *session) watch(stats *tracer.Stats) {
	rate, tell := x.pace.rate(stats.Calls+stats.LostEvents(), time.Now())
	if !tell || x.config.quiet {
		return
	}
	hint := "; --max-rate limits that"
	if x.config.maxRate > 0 {
		hint = ""
	}
	x.status.print("process %d makes %s calls/s, which tracing slows down: about %.0f %% of a processor go into it%s",
		x.pid, scaled(rate), 100*cost(rate), hint)
}

// pauses tells how often and how long nothing was recorded, for --max-rate.
func pauses(stats *tracer.Stats) string {
	return fmt.Sprintf("the recording was paused %s, %s in all, for --max-rate", times(stats.Lost[tracer.LossPaused]), printable.Text(stats.Paused.Round(time.Millisecond).String()))
}

// times says how often something was.
func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
