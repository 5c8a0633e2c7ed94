// Package sptext writes traces as the text of the sp-rtrace post-processor.
// docs/formats/sptext.md describes it.
package sptext

import (
	"errors"
	"fmt"
	"io"
	"time"

	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// Options are the options of a Writer. The zero value is right for live traces.
type Options struct {
	// KeepSeq prints Call.Seq as the index of a call. Without it, calls are counted
	// from 1 as the readers of the binary format count them: a move is two.
	KeepSeq bool
	// Legacy prints everything as the original post-processor does, including its
	// errors: sizes cut to 32 bits, nothing quoted, comments that could be misread as
	// records.
	Legacy bool
	// Location is the time zone of the header's time; nil is the local one.
	Location *time.Location
	// Timestamp, if not empty, is the header's time as text.
	Timestamp string
}

// chunk is the size at which the buffer is written, in bytes.
const chunk = 64 << 10

// Writer is a trace.Writer. It buffers. Each Write on the underlying writer ends after
// a complete event, so that a reader of a growing file or a pipe sees only whole
// events.
type Writer struct {
	w    io.Writer
	opts Options
	buf  []byte
	err  error

	header  trace.Header
	started bool // the header line was written
	index   uint64

	resources resources
	low, high uint64
	stacks    stacks
	last      functionText
	clock     clockText
}

var _ trace.Writer = (*Writer)(nil)

// New returns a Writer to w.
func New(w io.Writer, opts Options) (*Writer, error) {
	if w == nil {
		return nil, errors.New("sptext: no writer given")
	}
	return &Writer{w: w, opts: opts, buf: make([]byte, 0, chunk+chunk/4), low: ^uint64(0)}, nil
}

// WriteRecord implements trace.Writer. A Header waits for Process, because both make
// the header line; any other record ends the wait. Thread, Module, Exit, Opaque,
// HeapGrow, RSS, Window and Cost have no text, and End has one only if the Header announces it.
func (w *Writer) WriteRecord(r *trace.Record) error {
	if w.err != nil {
		return w.err
	}
	switch r.Kind {
	case trace.KindCall:
		w.start(nil)
		w.calls(r)
	case trace.KindHeader:
		w.header = r.Header
	case trace.KindProcess:
		if w.started {
			w.buf = append(w.buf, wire.ProcessPrefix...)
			w.buf = appendInt(w.buf, int64(r.PID))
			w.buf = w.line(append(w.buf, ' '), r.Process.Name)
		}
		w.start(r)
	case trace.KindThread, trace.KindModule, trace.KindExit, trace.KindOpaque, trace.KindHeapGrow,
		trace.KindFunction, trace.KindSample, trace.KindEvent, trace.KindRSS, trace.KindWindow, trace.KindCost:
		return nil
	case trace.KindEnd:
		if !w.marked() {
			return nil
		}
		w.start(nil)
		w.buf = append(w.buf, wire.End+"\n"...)
	default:
		w.start(nil)
		w.registry(r)
	}
	return w.pass(chunk)
}

// pass writes the buffer if it holds at least n bytes.
func (w *Writer) pass(n int) error {
	if len(w.buf) < n {
		return w.err
	}
	if _, err := w.w.Write(w.buf); err != nil && w.err == nil {
		w.err = fmt.Errorf("writing text trace: %w", err)
	}
	w.buf = w.buf[:0]
	return w.err
}

// Flush implements trace.Writer. It does not write a header that still waits for its
// process.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	return w.pass(1)
}

// Close implements trace.Writer. A trace without any event still has a header line.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	w.start(nil)
	return w.pass(1)
}

// start writes the header line unless it is written. process may be nil.
func (w *Writer) start(process *trace.Record) {
	if w.started {
		return
	}
	w.started = true
	b := w.pair(w.buf, wire.KeyVersion, wire.Version)
	if w.header.Arch != "" {
		b = w.pair(b, wire.KeyArch, w.header.Arch)
	}
	wall := w.header.WallTime
	if process != nil && process.Process.WallTime != 0 {
		wall = process.Process.WallTime
	}
	switch {
	case w.opts.Timestamp != "":
		b = w.pair(b, wire.KeyTimestamp, w.opts.Timestamp)
	case wall != 0 || w.opts.Legacy:
		b = w.pair(b, wire.KeyTimestamp, FormatTime(time.Unix(0, wall), w.opts.Location))
	}
	if process != nil {
		if process.Process.Name != "" {
			b = w.pair(b, wire.KeyProcess, process.Process.Name)
		}
		if process.PID != 0 || w.opts.Legacy {
			b = append(b, wire.KeyPID+"="...)
			b = append(appendInt(b, int64(process.PID)), ", "...)
		}
	}
	if w.header.Filter != "" {
		b = w.pair(b, wire.KeyFilter, w.header.Filter)
	}
	if process != nil && process.Process.Depth >= 0 {
		b = append(b, wire.KeyDepth+"="...)
		b = append(appendInt(b, int64(process.Process.Depth)), ", "...)
	}
	if w.header.Origin != "" {
		b = w.pair(b, wire.KeyOrigin, w.header.Origin)
	}
	w.buf = append(b, '\n')
	if w.marked() {
		w.buf = append(w.buf, wire.Ends+"\n"...)
	}
}

// marked reports whether the text marks its end.
func (w *Writer) marked() bool { return w.header.Ends && !w.opts.Legacy }

func (w *Writer) pair(b []byte, key, value string) []byte {
	b = append(append(b, key...), '=')
	b = w.quote(b, value, inHeader)
	return append(b, ", "...)
}

// FormatTime returns a time as in the header line: the date has no leading zeros. A nil
// location means the local time zone.
func FormatTime(t time.Time, loc *time.Location) string {
	if loc == nil {
		loc = time.Local
	}
	t = t.In(loc)
	return fmt.Sprintf("%d.%d.%d %02d:%02d:%02d",
		t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second())
}
