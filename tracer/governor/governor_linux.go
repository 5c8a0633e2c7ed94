package governor

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/probe"
)

// ShortestPause is the shortest pause: detaching and attaching the probes takes a tenth
// of it.
const ShortestPause = time.Second

// Governor detaches and attaches the probes while the trace lasts. The collector owns it;
// its methods must not be called concurrently.
//
// It keeps the rate of calls below a limit: when there were too many in a period, it
// detaches the probes until the period is long enough for them. Probes that are only
// switched off would cost the process almost as much as probes that record.
//
// On kernels without uprobe_multi, probes are perf events of one thread, the main thread,
// and the kernel removes them when it ends; the governor attaches them to another thread.
// With uprobe_multi the probes stay, but may be removed when another tracer detaches:
// after the main thread has ended, the governor regularly checks that they are in place,
// and otherwise has another thread hold them.
type Governor struct {
	mainThread int
	process    Process
	programs   Programs
	probes     Probes

	windows  *Windows // nil if there is no budget
	mover    mover
	rate     rate
	presence presence
	since    uint64     // when the gap began, if there is one
	reason   order.Loss // of the gap
}

// Process is the traced process; a *process.Target implements it.
type Process interface {
	Carrier() (tid int, settled bool)
}

// Programs is the switch of the programs; a *programs.Switch implements it.
type Programs interface {
	Suspend() error
	Enable() error
}

// Probes is what a Governor moves; *probe.Probes implements it, and describes the
// methods. Those that return only an error run in a goroutine, one at a time.
type Probes interface {
	Thread() int
	Outlive() bool
	Breakpoints(tid int) (*probe.Breakpoints, error)
	Detach() error
	Reattach() error
	Revive() error
	Hold(tid int) error
}

// New returns the governor of attached probes. limit is the most calls per second, 0 for
// no limit. The caller must close it.
func New(limit uint64, mainThread int, process Process, programs Programs, probes Probes) *Governor {
	return &Governor{
		mainThread: mainThread, process: process, programs: programs, probes: probes,
		rate: rate{limit: limit}, mover: mover{moved: make(chan error, 1)},
	}
}

// Within has the governor open and close windows. The probes are attached, and the programs are
// still off: it opens the first window and switches them on. Call it before Govern.
func (g *Governor) Within(w *Windows) error {
	g.windows = w
	w.open()
	return g.programs.Enable()
}

// TakeTurns returns the turns of windows since it was last called.
func (g *Governor) TakeTurns() (turns []Turn) {
	if g.windows != nil {
		turns, g.windows.turns = g.windows.turns, nil
	}
	return turns
}

// Urgent reports whether Govern is to be called again within a millisecond or so.
func (g *Governor) Urgent() bool {
	return g.windows != nil && g.mover.state != waiting && (g.mover.state != recording || g.windows.urgent())
}

// Gap is a time for which calls are missing because the probes were not in place.
type Gap struct {
	Since, Until uint64     // ns of CLOCK_MONOTONIC
	Reason       order.Loss // LossPaused or LossProbesMoved
}

// Govern counts calls that were recorded since the last call of Govern, begins a pause
// when there are too many, and ends a gap when the probes are attached again. It returns
// the gap that has ended, and whether there is one, also together with an error.
func (g *Governor) Govern(calls int) (gap Gap, ok bool, err error) {
	now := order.Clock()
	g.look(now) // before take: a pause would hide that probes are missing
	if err := g.take(calls, now); err != nil {
		return gap, false, err
	}
	if err := g.replace(); err != nil {
		return gap, false, err
	}
	over, err := g.step(now)
	if err != nil || !over {
		return gap, false, err
	}
	if g.between() {
		g.windows.open()
		return gap, false, g.programs.Enable()
	}
	err = g.programs.Enable()
	// The gap includes switching the programs on, because calls are missing until some
	// moment of it.
	return g.gap(order.Clock()), true, err
}

// Await is Govern while the collector waits for a slow reader: a window closes when it has to, and
// none opens.
func (g *Governor) Await() (err error) {
	switch {
	case g.windows == nil:
	case g.mover.state == recording:
		err = g.take(0, order.Clock())
	case g.mover.state == detaching:
		_, err = g.step(order.Clock())
	}
	return err
}

// Incomplete returns the gap in which the trace ends at end, and whether there is one. It
// has a last look at the probes.
func (g *Governor) Incomplete(end uint64) (Gap, bool) {
	if g.mover.state == recording && g.presence.missing() {
		g.begin(g.presence.seen, order.LossProbesMoved)
		return g.gap(end), true
	}
	return g.gap(end), g.paused() && !g.between()
}

// begin begins a gap.
func (g *Governor) begin(since uint64, reason order.Loss) { g.since, g.reason = since, reason }

// gap returns the gap, which ends at until.
func (g *Governor) gap(until uint64) Gap { return Gap{g.since, until, g.reason} }

// between reports whether the last gap is a time between windows.
func (g *Governor) between() bool { return g.windows != nil && g.reason == order.LossPaused }

// paused reports whether there is a gap now.
func (g *Governor) paused() bool { return g.mover.state > recording }

// take counts recorded calls, and begins a pause if there are more than the limit allows.
func (g *Governor) take(calls int, now uint64) error {
	if g.mover.state == recording && g.rate.over(now) {
		g.rate.restart(now)
	}
	g.rate.taken += uint64(calls) // in a pause, calls from before it
	if g.mover.state != recording || !g.exceeded() {
		return nil
	}
	// The pause includes switching the programs off, because calls are missing from some
	// moment of it on.
	g.begin(order.Clock(), order.LossPaused)
	if err := g.programs.Suspend(); err != nil {
		return err
	}
	g.mover.start(detaching, g.probes.Detach)
	return nil
}

// exceeded reports whether the probes are to be detached.
func (g *Governor) exceeded() bool {
	if g.windows != nil {
		return g.windows.look()
	}
	return g.rate.exceeded()
}

// due reports whether the probes are to be attached again.
func (g *Governor) due(now uint64) bool {
	if g.windows != nil {
		return g.windows.due()
	}
	return now-g.since >= uint64(ShortestPause) && g.rate.met(now)
}

// ThreadEnded notes the end of a thread at a time.
func (g *Governor) ThreadEnded(tid int, time uint64) {
	if tid == g.probes.Thread() {
		g.presence.threadEnded(time)
	}
}

// replace attaches the probes to another thread if theirs has ended and the process
// continues: nothing was recorded in between. With uprobe_multi they are still in place,
// and the governor watches them from here on.
func (g *Governor) replace() error {
	if g.presence.ended == 0 || g.mover.state != recording {
		return nil
	}
	tid, settled := g.process.Carrier()
	if !settled {
		return nil
	}
	since := g.presence.ended
	g.presence.ended = 0
	if tid == 0 || tid == g.probes.Thread() || tid == g.mainThread {
		return nil // the process has ended, or replaced its program
	}
	if g.probes.Outlive() {
		return g.presence.watch(g.probes.Breakpoints, tid, since)
	}
	g.begin(since, order.LossProbesMoved)
	if err := g.programs.Suspend(); err != nil {
		return err
	}
	g.mover.start(attaching, g.probes.Revive)
	return nil
}

// look checks whether the probes are in place, and has another thread hold them if not.
func (g *Governor) look(now uint64) {
	if g.mover.state != recording || !g.presence.due(now) {
		return
	}
	if !g.presence.missing() {
		g.presence.seen = now
		return
	}
	tid, settled := g.process.Carrier()
	if !settled || tid == 0 || tid == g.mainThread {
		return // the process is ending, or has replaced its program
	}
	g.begin(g.presence.seen, order.LossProbesMoved)
	g.mover.start(holding, func() error { return g.probes.Hold(tid) })
}

// step continues a gap. It returns true when the probes are attached again: the caller
// then switches the programs on, and the next period begins.
func (g *Governor) step(now uint64) (over bool, err error) {
	switch g.mover.state {
	case waiting:
		if g.due(now) {
			g.mover.start(attaching, g.probes.Reattach)
		}
		return false, nil
	case recording, ended:
		return false, nil
	}
	moved, err := g.mover.done()
	if !moved {
		return false, nil
	}
	gone := errors.Is(err, unix.ESRCH)
	switch {
	case g.mover.state == holding && gone:
		g.mover.state = recording // the next look finds another thread, or the process is ending
		return false, nil
	case g.mover.state == attaching && gone && g.reason == order.LossProbesMoved:
		g.mover.state, g.presence.ended = recording, g.since // perhaps there is another thread, or the process is ending
		return false, nil
	case g.mover.state == attaching && gone:
		g.mover.state = ended
		if tid, settled := g.process.Carrier(); !settled || tid != 0 && tid != g.mainThread {
			g.mover.start(detaching, g.probes.Detach) // then attach again: the thread has ended, but not the process
		}
		return false, nil
	case err != nil:
		return false, fmt.Errorf("move the probes: %w", err)
	case g.mover.state == holding:
		g.mover.state, g.presence.seen = recording, now
		return true, nil
	case g.mover.state == detaching:
		g.mover.state = waiting
		if g.between() {
			g.windows.closed()
		}
		return false, nil
	}
	g.mover.state, g.presence.seen = recording, now
	g.rate.restart(now)
	return true, nil
}

// Close waits until no goroutine moves probes any more.
func (g *Governor) Close() {
	g.mover.running.Wait()
	g.presence.Close()
}
