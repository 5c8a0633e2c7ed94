package sidefile

import "rtrace-bpf/trace"

const dayNanos = 24 * 3600 * 1e9

// clocks converts the times of a side file to the clock of its trace.
type clocks struct {
	clock trace.Clock // of the trace
	shift int64       // from the clock of the side file to that of the trace
}

// shift returns the difference between the times of a trace with wall clock
// times and those of its side file.
func shift(main, side *trace.Header) int64 {
	if main.Clock != trace.ClockWall || side.Clock == trace.ClockWall {
		return 0
	}
	return side.WallTime - side.ClockTime
}

// convert converts the times of a record of the side file.
func (c *clocks) convert(r *trace.Record) {
	r.Time = c.onClock(r.Time)
	if r.Kind == trace.KindLost {
		r.Lost.Since = c.onClock(r.Lost.Since)
	}
}

func (c *clocks) onClock(t int64) int64 {
	if t != 0 {
		t += c.shift
	}
	if c.clock == trace.ClockDay {
		t %= dayNanos
		t -= t % 1e6
	}
	return t
}

func (c *clocks) completeHeader(main, side *trace.Record) {
	m, s := &main.Header, &side.Header
	if m.Arch == "" {
		m.Arch = s.Arch
	}
	if m.PointerSize == 0 {
		m.PointerSize = s.PointerSize
	}
	if m.Origin == "" {
		m.Origin = s.Origin
	}
	m.Ends = m.Ends || s.Ends
	if m.WallTime == 0 && m.ClockTime == 0 {
		m.WallTime, m.ClockTime = s.WallTime, c.onClock(s.ClockTime)
	}
	c.completeCommon(main, side)
}

func (c *clocks) completeProcess(main, side *trace.Record) {
	m, s := &main.Process, &side.Process
	if s.WallTime != 0 {
		m.WallTime = s.WallTime
	}
	if m.Name == "" {
		m.Name = s.Name
	}
	if m.Parent == 0 {
		m.Parent = s.Parent
	}
	if m.Started == 0 {
		m.Started = s.Started
	}
	if m.Path == "" {
		m.Path = s.Path
	}
	c.completeCommon(main, side)
}

func (c *clocks) completeCommon(main, side *trace.Record) {
	if main.Time == 0 {
		main.Time = c.onClock(side.Time)
	}
	if main.PID == 0 {
		main.PID = side.PID
	}
}
