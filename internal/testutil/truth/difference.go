package truth

import (
	"errors"
	"fmt"
	"strings"

	"rtrace-bpf/trace"
)

// difference is the first difference between a trace and the log, with its context. What
// follows in the trace is still collected.
type difference struct {
	text  strings.Builder
	tid   int32
	after int // events of the thread in the trace
}

func newDifference(t *thread, wrong string, got Event, rec *trace.Record) *difference {
	d := &difference{tid: t.tid}
	fmt.Fprintf(&d.text, "thread %d, event %d (call %d of the trace): %s\n", t.tid, t.events, rec.Call.Seq, wrong)
	d.before(t)
	fmt.Fprintf(&d.text, "! trace  %s, at %d, cpu %d\n", got, rec.Time, rec.CPU-1)
	d.logged(t, t.entry)
	return d
}

// newMissing returns the difference for a call of the log that is not in the trace.
func newMissing(t *thread, e *Entry) error {
	d := &difference{tid: t.tid}
	fmt.Fprintf(&d.text, "thread %d, event %d: a call of the log is not in the trace\n", t.tid, t.events)
	d.before(t)
	d.logged(t, e)
	return d.end()
}

// before shows the last events that agreed.
func (d *difference) before(t *thread) {
	for i := max(0, t.events-kept); i < t.events; i++ {
		fmt.Fprintf(&d.text, "  both   %s\n", t.recent[i%kept])
	}
}

// logged adds the entry and those that follow it.
func (d *difference) logged(t *thread, e *Entry) {
	mark := "!"
	for range kept + 1 {
		if e == nil {
			fmt.Fprintf(&d.text, "%s log    its end\n", mark)
			return
		}
		fmt.Fprintf(&d.text, "%s log    %s (entry %d)\n", mark, e, t.cursor.index-1)
		mark = " "
		var err error
		if e, err = t.cursor.next(); err != nil {
			fmt.Fprintf(&d.text, "  log    %v\n", err)
			return
		}
	}
}

// more adds what follows in the trace. It returns the difference when there is enough.
func (d *difference) more(rec *trace.Record) error {
	if rec.Kind != trace.KindCall || rec.TID != d.tid {
		return nil
	}
	fmt.Fprintf(&d.text, "  trace  %s, at %d\n", eventOf(&rec.Call), rec.Time)
	if d.after++; d.after < kept {
		return nil
	}
	return d.end()
}

// end returns the difference, or nil if d is nil.
func (d *difference) end() error {
	if d == nil {
		return nil
	}
	return errors.New(strings.TrimSuffix(d.text.String(), "\n"))
}
