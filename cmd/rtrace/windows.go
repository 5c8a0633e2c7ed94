package main

import (
	"fmt"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// everyCall makes a command fail with a trace whose calls are those of windows: it would
// count them as all calls.
func everyCall(t *decoder.Trace, command string) { t.Reader = &wholeReader{t.Reader, command} }

// wholeReader is a trace.Reader that fails at the first window.
type wholeReader struct {
	from    trace.Reader
	command string
}

// ReadRecord implements trace.Reader.
func (w *wholeReader) ReadRecord(r *trace.Record) error {
	err := w.from.ReadRecord(r)
	if err == nil && r.Kind == trace.KindWindow {
		return cli.WithHint(fmt.Errorf("the trace was recorded with --budget, and rtrace %s needs every call", w.command),
			"rtrace info, top and report, the profiles pprof, folded and speedscope, and tables (parquet) have estimates, and rtrace report BEFORE AFTER compares those of two traces; rtrace-bpf -e growth records what grows")
	}
	return err
}
