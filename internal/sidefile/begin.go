package sidefile

import (
	"errors"
	"fmt"
	"strings"

	"rtrace-bpf/trace"
)

// maxPrelude is the largest number of records before main's Process.
const maxPrelude = 64

// begin reads the beginning of both files and decides whether they belong
// together.
func (o *Reader) begin() {
	o.begun = true
	if err := o.src.begin(); err != nil {
		o.damage, o.off, o.src = err, true, nil
		return
	}
	o.fill()
	var header, process *trace.Record // of the side file
	for o.head < len(o.queue) {
		r := o.queue[o.head].r
		if r.Kind == trace.KindHeader {
			header = r
		} else if r.Kind == trace.KindProcess {
			process = r
		} else {
			break
		}
		o.take()
	}
	o.readPrelude()
	for _, r := range o.prelude {
		if err := belongs(r, process); err != nil {
			o.refuse(err)
			return
		}
	}
	o.known = header != nil
	for _, r := range o.prelude {
		switch r.Kind {
		case trace.KindHeader:
			o.marked = r.Header.Ends
			o.ends = o.marked || header != nil && header.Header.Ends
			o.clock = r.Header.Clock
			if header != nil {
				o.shift = shift(&r.Header, &header.Header)
				o.completeHeader(r, header)
			}
		case trace.KindProcess:
			if process != nil {
				o.completeProcess(r, process)
			}
			o.pid = r.PID
		}
	}
}

func (o *Reader) refuse(err error) {
	o.warn(fmt.Errorf("side file is not used: %w", err))
	o.off = true
	o.src, o.queue = nil, nil
}

func (o *Reader) readPrelude() {
	for len(o.prelude) < maxPrelude {
		var r trace.Record
		if o.preludeErr = o.main.ReadRecord(&r); o.preludeErr != nil {
			return
		}
		o.prelude = append(o.prelude, r.Clone())
		if r.Kind == trace.KindProcess || r.Kind == trace.KindCall {
			return
		}
	}
}

// filtered reports whether a filter has changed the positions of calls.
func filtered(filter string) bool {
	for f := range strings.SplitSeq(filter, "|") {
		if f == "leaks" || f == "compress" {
			return true
		}
	}
	return false
}

// belongs returns an error if main's record r shows that the side file with the
// given Process belongs to another trace.
func belongs(r, process *trace.Record) error {
	switch {
	case r.Kind == trace.KindHeader && filtered(r.Header.Filter):
		return errors.New("the trace was filtered after it was recorded")
	case r.Kind != trace.KindProcess || process == nil:
	case r.PID != process.PID && r.PID != 0:
		return fmt.Errorf("it is about process %d and the trace about %d", process.PID, r.PID)
	case !sameStart(r.Process.WallTime, process.Process.WallTime):
		return fmt.Errorf("it is about a trace of process %d that began at another time", r.PID)
	}
	return nil
}

// sameStart compares times in ns since 1970. main may be truncated to micro- or
// milliseconds, or to seconds of an unknown time zone.
func sameStart(main, side int64) bool {
	if main == 0 || side == 0 {
		return true
	}
	for _, unit := range []int64{1, 1e3, 1e6} {
		if main == side-side%unit {
			return true
		}
	}
	const zone = 15 * 60 // time zones differ by whole quarters of an hour
	return main%1e9 == 0 && (side/1e9-main/1e9)%zone == 0
}

// shift returns the difference between the times of a trace with wall clock
// times and those of its side file.
func shift(main, side *trace.Header) int64 {
	if main.Clock != trace.ClockWall || side.Clock == trace.ClockWall {
		return 0
	}
	return side.WallTime - side.ClockTime
}

func (o *Reader) completeHeader(main, side *trace.Record) {
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
		m.WallTime, m.ClockTime = s.WallTime, o.onClock(s.ClockTime)
	}
	o.completeCommon(main, side)
}

func (o *Reader) completeProcess(main, side *trace.Record) {
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
	o.completeCommon(main, side)
}

func (o *Reader) completeCommon(main, side *trace.Record) {
	if main.Time == 0 {
		main.Time = o.onClock(side.Time)
	}
	if main.PID == 0 {
		main.PID = side.PID
	}
}
