package sidefile

import (
	"errors"
	"fmt"
	"strings"

	"rtrace-bpf/trace"
)

// begin reads the beginning of both files and decides whether they belong
// together.
func (o *Reader) begin() {
	o.begun = true
	header, process, err := o.side.begin()
	if err != nil {
		o.off = true
		return
	}
	o.main.readPrelude()
	for _, r := range o.main.prelude {
		if err := belongs(r, process); err != nil {
			o.refuse(err)
			return
		}
	}
	o.known = header != nil
	for _, r := range o.main.prelude {
		switch r.Kind {
		case trace.KindHeader:
			o.main.marked = r.Header.Ends
			o.ends = o.main.marked || header != nil && header.Header.Ends
			o.clocks.clock = r.Header.Clock
			if header != nil {
				o.clocks.shift = shift(&r.Header, &header.Header)
				o.clocks.completeHeader(r, header)
			}
		case trace.KindProcess:
			if process != nil {
				o.clocks.completeProcess(r, process)
			}
			o.main.pid = r.PID
		}
	}
}

func (o *Reader) refuse(err error) {
	o.warn(fmt.Errorf("side file is not used: %w", err))
	o.off = true
	o.side.drop()
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
