package main

import (
	"fmt"
	"strings"
	"time"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
)

// What the user has to know of, at least.
const (
	dearShare  = 0.1  // of the processor time of the process that goes into tracing
	dearPace   = 0.02 // of a processor that goes into it: less harms nobody
	dearLoss   = 0.01 // of the calls that are lost
	vagueShare = 0.5  // from here on what is not measured, as the cold caches of the program, weighs
	mostShare  = 0.95 // larger shares are not distinguished: the measurement is not that exact
	warnFactor = 2    // by which the slow-down has to grow for another warning
)

// reading is what is known of a process at a moment, counted from the start.
type reading struct {
	hits        tracer.Hits   // of probes, also of calls that were lost or left out
	calls, lost uint64        // calls that were recorded, and not
	cpu         time.Duration // that the process has used
}

// pace follows what tracing costs a process, and the warnings about it.
type pace struct {
	last       reading
	at         time.Time
	warned     float64 // the greatest slow-down of a warning
	warnedLoss bool    // of lost calls
	unknown    bool    // it was reported that costs are not known
}

// burden is what tracing was like in an interval.
type burden struct {
	rate  float64 // calls per second
	share float64 // of the processor time of the process that went into tracing
	busy  float64 // processors that went into it
	lost  float64 // of the calls, the part that was lost
}

// factor is how many times as long the process takes as without tracing, of processor
// time.
func (b *burden) factor() float64 { return 1 / (1 - b.share) }

// look takes over a reading and returns what the interval since the last one was like,
// and whether to warn: it costs the process much, and twice as much as at the last
// warning, or many calls are lost.
func (p *pace) look(r reading, now time.Time, costs tracer.Costs) (b burden, tell bool) {
	before, passed := p.last, now.Sub(p.at)
	first := p.at.IsZero()
	if first || passed <= 0 {
		p.last, p.at = r, now
		return burden{}, false
	}
	p.last, p.at = r, now
	calls, lost := float64(r.calls-before.calls), float64(r.lost-before.lost)
	b.rate = (calls + lost) / passed.Seconds()
	if calls+lost > 0 {
		b.lost = lost / (calls + lost)
	}
	cost := costs.Cost(r.hits.Since(before.hits))
	b.busy = cost.Seconds() / passed.Seconds()
	if cpu := r.cpu - before.cpu; cpu > 0 {
		b.share = min(cost.Seconds()/cpu.Seconds(), mostShare)
	}
	much := cost.Seconds() >= dearPace*max(1, passed.Seconds()) // also of a short interval
	if b.share >= dearShare && much && b.factor() >= warnFactor*p.warned {
		p.warned, tell = b.factor(), true
	}
	if b.lost >= dearLoss && !p.warnedLoss {
		p.warnedLoss, tell = true, true
	}
	return b, tell
}

// text says what tracing was like, with what helps.
func (b *burden) text(c *config, costs tracer.Costs) string {
	text := fmt.Sprintf("makes %s calls/s", scaled(b.rate))
	if b.share >= dearShare {
		about := "about"
		if b.share >= vagueShare {
			about = "at least"
		}
		text += fmt.Sprintf("; %s %.0f %% of its CPU time goes into tracing, so it runs %s %.1f times slower (a probe costs %v on this machine, a return %v more)",
			about, 100*b.share, about, b.factor(), costs.Entry.Round(10*time.Nanosecond), costs.Return.Round(10*time.Nanosecond))
	}
	var help []string
	if b.lost >= dearLoss {
		text += fmt.Sprintf("; %.0f %% of the calls are lost", max(1, 100*b.lost))
		help = append(help, "a larger --ring-size")
	}
	if c.maxRate == 0 {
		help = append(help, "--max-rate, which records in turns")
	}
	if c.minSize == 0 && b.lost >= dearLoss {
		help = append(help, "--min-size, which leaves small blocks out")
	}
	if len(help) > 0 {
		text += "; what helps: " + strings.Join(help, ", or ")
	}
	return text
}

// watch warns if tracing costs the process much, and when many
// calls are lost.
// last says that the trace is over.
func (x *session) watch(stats *tracer.Stats, last bool) {
	costs, known, err := x.tracer.Costs(last)
	if err != nil && !x.pace.unknown {
		x.pace.unknown = true
		if x.config.verbose > 0 {
			x.status.print("process %d: what tracing costs it is not known: %v", x.pid, err)
		}
	}
	if err == nil && !known {
		return // the next look has this interval as well
	}
	hits, err := x.tracer.Hits()
	if err != nil {
		return // the losses are in the summary
	}
	x.pace.tell(x, reading{hits: hits, calls: stats.Calls, lost: stats.LostEvents(), cpu: x.resident.cpu()}, time.Now(), costs)
}

// tell prints what has to be known.
func (p *pace) tell(x *session, r reading, now time.Time, costs tracer.Costs) {
	b, tell := p.look(r, now, costs)
	if tell && !x.config.quiet {
		x.status.print("process %d %s", x.pid, b.text(x.config, costs))
	}
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
