// Package jsonl writes traces as JSON lines: the exact text form of
// trace.Record, one object per line, described in docs/formats/jsonl.md.
//
// The output depends on the records alone: keys have a fixed order, fields
// that are zero are left out, so equal traces are equal byte for byte.
package jsonl

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/jsonrecord"
	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

// flushAt is the number of buffered bytes at which they are written.
const flushAt = 64 << 10

// Writer encodes records. Each Write on the underlying writer is made of whole
// lines.
type Writer struct {
	w   io.Writer
	buf []byte
	err error // sticky
}

var _ trace.Writer = (*Writer)(nil)

var errClosed = errors.New("jsonl: writer is closed")

// New returns a Writer to w.
func New(w io.Writer) *Writer {
	jw := &Writer{w: w, buf: make([]byte, 0, flushAt+4096)}
	jw.buf = append(jw.buf, `{"format":"`+wire.Format+`","version":`...)
	jw.buf = strconv.AppendInt(jw.buf, wire.Version, 10)
	jw.buf = append(jw.buf, "}\n"...)
	return jw
}

// WriteRecord encodes r. Every kind has a place in this format.
func (w *Writer) WriteRecord(r *trace.Record) error {
	if w.err != nil {
		return w.err
	}
	b, err := jsonrecord.Append(w.buf, r)
	if err != nil {
		return err
	}
	w.buf = append(b, '\n')
	if len(w.buf) >= flushAt {
		return w.Flush()
	}
	return nil
}

// Flush writes the buffered lines.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if len(w.buf) == 0 {
		return nil
	}
	err := binio.Write(w.w, w.buf)
	w.buf = w.buf[:0]
	if err != nil {
		w.err = fmt.Errorf("writing jsonl: %w", err)
	}
	return w.err
}

// Close flushes the output; the format has no trailer of its own.
func (w *Writer) Close() error {
	if errors.Is(w.err, errClosed) {
		return nil
	}
	err := w.Flush()
	if err == nil {
		w.err = errClosed
	}
	return err
}
