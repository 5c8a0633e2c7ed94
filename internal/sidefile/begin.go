package sidefile

import (
	"errors"
	"fmt"
	"strings"

	"rtrace-bpf/trace"
)

// maxPrelude is how many records may stand before main's Process.
const maxPrelude = 64

// begin reads the beginning of both files and decides whether they belong
// together.
func (o *Reader) begin() {
	o.begun = true
	if err := o.src.begin(); err != nil {
		o.refuse(err)
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
		switch {
		case r.Kind == trace.KindHeader && filtered(r.Header.Filter):
			o.refuse(errors.New("the trace was filtered after it was recorded"))
			return
		case r.Kind == trace.KindHeader:
			o.clock = r.Header.Clock
			if header != nil {
				o.completeHeader(&r.Header, &header.Header)
			}
		case r.Kind == trace.KindProcess:
			o.pid = r.PID
			if process == nil {
				break
			}
			if err := sameProcess(r, process); err != nil {
				o.refuse(err)
				return
			}
			o.completeProcess(r, process)
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

func sameProcess(main, side *trace.Record) error {
	if main.PID != side.PID {
		return fmt.Errorf("it is about process %d and the trace about %d", side.PID, main.PID)
	}
	if !sameStart(main.Process.WallTime, side.Process.WallTime) {
		return fmt.Errorf("it is about a trace of process %d that began at another time", side.PID)
	}
	return nil
}

// sameStart compares times in ns since 1970; main may be cut to micro- or
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

func (o *Reader) completeHeader(main, side *trace.Header) {
	if main.Arch == "" {
		main.Arch = side.Arch
	}
	if main.PointerSize == 0 {
		main.PointerSize = side.PointerSize
	}
	if main.Origin == "" {
		main.Origin = side.Origin
	}
	if main.WallTime == 0 && main.ClockTime == 0 {
		main.WallTime, main.ClockTime = side.WallTime, o.onClock(side.ClockTime)
	}
}

func (o *Reader) completeProcess(main, side *trace.Record) {
	if side.Process.WallTime != 0 {
		main.Process.WallTime = side.Process.WallTime
	}
	if main.Process.Name == "" {
		main.Process.Name = side.Process.Name
	}
	if main.Time == 0 {
		main.Time = o.onClock(side.Time)
	}
}
