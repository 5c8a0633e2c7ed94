package tracer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// shortestPause is the shortest pause: detaching and attaching the probes takes a tenth
// of it.
const shortestPause = time.Second

// lookInterval is how often the governor looks for missing probes. A look reads the
// process's memory once for each probe.
const lookInterval = 50 * time.Millisecond

// governor detaches and attaches the probes while the trace lasts. The collector owns it.
//
// It keeps the rate of calls below a limit: when there were too many in a period, it
// detaches the probes until the period is long enough for them. Probes that are only
// switched off would cost the process almost as much as probes that record. Goroutines
// move the probes, because that takes seconds on kernels without uprobe_multi.
//
// On those kernels, probes are perf events of one thread, the main thread, and the kernel
// removes them when it ends; the governor attaches them to another thread. With
// uprobe_multi the probes stay, but may be removed when another tracer detaches: after
// the main thread has ended, the governor regularly checks that they are in place, and
// otherwise has another thread hold them.
type governor struct {
	limit      uint64 // calls per second; 0 for no limit
	mainThread int
	task       func() int // thread that the probes are attached to
	carrier    func() (tid int, settled bool)
	revive     func() error
	watch      func(tid int) (*breakpoints, error) // nil without uprobe_multi
	hold       func(tid int) error                 // used with watch, instead of revive
	suspend    func() error
	detach     func() error
	reattach   func() error
	resume     func() error

	state   governing
	began   uint64       // when the period began
	taken   uint64       // calls in the period
	since   uint64       // when the gap began, if there is one
	revived bool         // the gap is for lack of a thread, not for the limit
	ended   uint64       // when the thread that the probes are attached to ended; 0 if it has not
	watched *breakpoints // nil while the probes cannot be removed
	looked  uint64       // when the probes were last seen in place
	moved   chan error
	running sync.WaitGroup
}

// governing is the state of a governor.
type governing uint8

const (
	governRecording governing = iota
	governHolding             // recording with the probes that are in place
	governDetaching
	governWaiting
	governAttaching
	governOver // the process has ended
)

func newGovernor(limit uint64, k *kernel, p *plan.Plan) *governor {
	g := &governor{
		limit: limit, mainThread: p.Target.PID, carrier: p.Target.Carrier,
		task:    func() int { return int(k.task.Load()) },
		suspend: k.suspend, detach: k.detach, resume: k.enable,
		reattach: func() error { return k.reattach(p) },
		revive:   func() error { return k.revive(p) },
		moved:    make(chan error, 1),
	}
	if p.Mechanisms.Attach == host.MechanismMulti {
		g.watch = k.breakpoints
		g.hold = func(tid int) error { return k.hold(p, tid) }
	}
	return g
}

// paused reports whether there is a gap now, which began at since.
func (g *governor) paused() bool { return g.state > governRecording }

// incomplete is paused for the end of the trace, with a last look at the probes.
func (g *governor) incomplete() bool {
	if g.state == governRecording && g.watched != nil && g.watched.missing() {
		g.since, g.revived = g.looked, true
		return true
	}
	return g.paused()
}

// take counts recorded calls, and begins a pause if there are more than the limit allows.
func (g *governor) take(calls int, now uint64) error {
	if g.state == governRecording && now-g.began >= uint64(time.Second) {
		g.began, g.taken = now, 0
	}
	g.taken += uint64(calls) // in a pause, calls from before it
	if g.state != governRecording || g.limit == 0 || g.taken <= g.limit {
		return nil
	}
	// The pause includes switching the programs off, because calls are missing from some
	// moment of it on.
	g.since, g.revived = order.Clock(), false
	if err := g.suspend(); err != nil {
		return err
	}
	g.move(governDetaching, g.detach)
	return nil
}

// threadEnded notes the end of a thread.
func (g *governor) threadEnded(tid int, time uint64) {
	if tid == g.task() && g.ended == 0 {
		g.ended = time
	}
}

// replace attaches the probes to another thread if theirs has ended and the process
// continues: nothing was recorded in between. With uprobe_multi they are still in place,
// and the governor watches them from here on.
func (g *governor) replace() error {
	if g.ended == 0 || g.state != governRecording {
		return nil
	}
	tid, settled := g.carrier()
	if !settled {
		return nil
	}
	since := g.ended
	g.ended = 0
	if tid == 0 || tid == g.task() || tid == g.mainThread {
		return nil // the process has ended, or replaced its program
	}
	if g.watch != nil {
		return g.beginWatch(tid, since)
	}
	g.since, g.revived = since, true
	if err := g.suspend(); err != nil {
		return err
	}
	g.move(governAttaching, g.revive)
	return nil
}

// beginWatch starts to watch the probes in the memory of thread tid.
func (g *governor) beginWatch(tid int, since uint64) (err error) {
	if g.watched != nil {
		return nil
	}
	g.looked = since
	g.watched, err = g.watch(tid)
	if isGone(err) {
		g.ended = since // try again with another thread
		return nil
	}
	return err
}

// look checks whether the probes are in place, and has another thread hold them if not.
func (g *governor) look(now uint64) {
	if g.watched == nil || g.state != governRecording || now-g.looked < uint64(lookInterval) {
		return
	}
	if !g.watched.missing() {
		g.looked = now
		return
	}
	tid, settled := g.carrier()
	if !settled || tid == 0 || tid == g.mainThread {
		return // the process is ending, or has replaced its program
	}
	g.since, g.revived = g.looked, true
	g.move(governHolding, func() error { return g.hold(tid) })
}

// period returns how long the counted calls must last to stay within the limit.
func (g *governor) period() time.Duration {
	return time.Duration(float64(g.taken) / float64(g.limit) * float64(time.Second))
}

func (g *governor) move(state governing, probes func() error) {
	g.state = state
	g.running.Go(func() { g.moved <- probes() })
}

// step continues a gap. It returns true when the probes are attached again: the caller
// then calls resume, and the next period begins.
func (g *governor) step(now uint64) (over bool, err error) {
	switch g.state {
	case governWaiting:
		if now-g.since >= uint64(shortestPause) && now-g.began >= uint64(g.period()) {
			g.move(governAttaching, g.reattach)
		}
		return false, nil
	case governRecording, governOver:
		return false, nil
	}
	select {
	case err = <-g.moved:
	default:
		return false, nil
	}
	switch {
	case g.state == governHolding && errors.Is(err, unix.ESRCH):
		g.state = governRecording // the next look finds another thread, or the process is ending
		return false, nil
	case g.state == governAttaching && errors.Is(err, unix.ESRCH) && g.revived:
		g.state, g.ended = governRecording, g.since // perhaps there is another thread, or the process is ending
		return false, nil
	case g.state == governAttaching && errors.Is(err, unix.ESRCH):
		g.state = governOver
		if tid, settled := g.carrier(); !settled || tid != 0 && tid != g.mainThread {
			g.move(governDetaching, g.detach) // then attach again: the thread has ended, but not the process
		}
		return false, nil
	case err != nil:
		return false, fmt.Errorf("move the probes: %w", err)
	case g.state == governHolding:
		g.state, g.looked = governRecording, now
		return true, nil
	case g.state == governDetaching:
		g.state = governWaiting
		return false, nil
	}
	g.state, g.began, g.taken, g.looked = governRecording, now, 0, now
	return true, nil
}

// Close waits until no goroutine moves probes any more.
func (g *governor) Close() {
	g.running.Wait()
	if g.watched != nil {
		g.watched.Close()
	}
}
