package governor

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/budget"
	"rtrace-bpf/tracer/order"
)

// Windows opens and closes windows, so that recording stays within a budget. It belongs to a
// Governor.
type Windows struct {
	share     float64
	scheduler *budget.Scheduler
	meters    Meters
	first     budget.Reading // when the recording began
	last      budget.Reading
	tracer    time.Duration // processor time of this process, then
	turns     []Turn        // that TakeTurns has not returned
}

// Meters read what has been used up to now. A meter that cannot be read any more returns an
// error.
type Meters struct {
	Process func() (time.Duration, error) // processor time of the process
	Moves   func() (time.Duration, error) // processor time for attaching and detaching probes
	Hits    func() (time.Duration, error) // what hits of probes have cost the process
}

// Turn is a moment at which a window opens, changes or closes.
type Turn struct {
	Time   uint64 // CLOCK_MONOTONIC, ns
	Window trace.Window
}

// NewWindows returns windows that add at most share to the processor time of a process. No
// probe is in place yet.
func NewWindows(share float64, meters Meters) *Windows {
	w := &Windows{share: share, meters: meters, tracer: ownTime()}
	w.last.Time = time.Duration(order.Clock())
	w.first = w.read()
	w.scheduler = budget.New(share, w.first, rand.NewPCG(rand.Uint64(), rand.Uint64()))
	return w
}

// CPUTime returns the processor time of all threads of a process, to the nanosecond.
func CPUTime(pid int) (time.Duration, error) {
	const sched = 2 // CPUCLOCK_SCHED of the kernel's include/linux/posix-timers.h
	var ts unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|sched, &ts)
	return time.Duration(ts.Nano()), err
}

// ownTime returns the processor time of this process.
func ownTime() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) // cannot fail with these arguments
	return time.Duration(ts.Nano())
}

// read reads the meters. What cannot be read keeps its last value.
func (w *Windows) read() budget.Reading {
	r := &w.last
	r.Time = time.Duration(order.Clock())
	for _, m := range []struct {
		read func() (time.Duration, error)
		to   *time.Duration
	}{{w.meters.Hits, &r.Hits}, {w.meters.Process, &r.CPU}, {w.meters.Moves, &r.Moves}} {
		if n, err := m.read(); err == nil {
			*m.to = max(*m.to, n)
		}
	}
	return *r
}

// turn adds a turn at the time of a reading.
func (w *Windows) turn(r budget.Reading, weight uint64, until, stretch time.Duration) {
	w.turns = append(w.turns, Turn{uint64(r.Time), trace.Window{
		Weight: weight, Until: int64(until), Stretch: int64(stretch),
		Used: int64(r.CPU - w.first.CPU), Added: int64(r.Hits - w.first.Hits), Doubt: trace.CostDoubt * 1e6,
	}})
}

// due reports whether the probes are to be attached.
func (w *Windows) due() bool { return w.scheduler.Due(w.read()) }

// open notes that the probes are in place. The caller then switches the programs on.
func (w *Windows) open() {
	r := w.read()
	x := w.scheduler.Open(r)
	w.turn(r, x.Weight, x.Until, x.Stretch)
}

// look reports whether the window is to close.
func (w *Windows) look() bool {
	r := w.read()
	switch w.scheduler.Look(r) {
	case budget.Close:
		w.turn(r, 0, 0, 0)
		return true
	case budget.Reweigh:
		x := w.scheduler.Window()
		w.turn(r, x.Weight, x.Until, x.Stretch)
	}
	return false
}

// closed notes that the probes are detached.
func (w *Windows) closed() { w.scheduler.Closed(w.read()) }

// brief is the longest time to the end of a window that is to be awaited with care.
const brief = 50 * time.Millisecond

// urgent reports whether the window that is open may have to close within milliseconds.
func (w *Windows) urgent() bool {
	x := w.scheduler.Window()
	return x.Weight > 1 || x.Until-w.last.Time < brief
}

// Cost returns what the recording has cost the process up to now.
func (w *Windows) Cost() trace.Cost {
	r := w.read()
	s := w.scheduler.Spent(r)
	millionths := func(x float64) uint64 { return uint64(x*1e6 + 0.5) }
	return trace.Cost{
		Used: int64(s.CPU), Added: int64(r.Hits - w.first.Hits), Tracer: int64(ownTime() - w.tracer + r.Moves - w.first.Moves),
		Budget: millionths(w.share), Worst: millionths(s.Worst), Over: millionths(s.Over),
		Covered: int64(s.Covered), Longest: int64(s.Longest),
	}
}
