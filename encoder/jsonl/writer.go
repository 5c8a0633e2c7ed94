// Package jsonl writes traces as JSON lines: the exact text form of trace.Record, one
// object per line, that docs/formats/jsonl.md describes.
//
// The output depends only on the records: keys have a fixed order and fields that are
// zero are left out. So equal traces are equal byte for byte.
package jsonl

import (
	"io"
	"strconv"

	"rtrace-bpf/internal/binio"
	"rtrace-bpf/internal/jsonrecord"
	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

// Writer encodes records. Each Write on the underlying writer consists of whole lines.
type Writer struct{ out binio.Output }

var _ trace.Writer = (*Writer)(nil)

// New returns a Writer to w.
func New(w io.Writer) *Writer {
	jw := &Writer{binio.NewOutput(w, "jsonl", 4096)}
	b := append(jw.out.Buf, `{"format":"`+wire.Format+`","version":`...)
	b = strconv.AppendInt(b, wire.Version, 10)
	jw.out.Buf = append(b, "}\n"...)
	return jw
}

// WriteRecord encodes r. Every kind has a place in this format.
func (w *Writer) WriteRecord(r *trace.Record) error {
	if err := w.out.Err(); err != nil {
		return err
	}
	b, err := jsonrecord.Append(w.out.Buf, r)
	if err != nil {
		return err
	}
	w.out.Buf = append(b, '\n')
	return w.out.Pass()
}

// Flush writes the buffered lines.
func (w *Writer) Flush() error { return w.out.Flush() }

// Close flushes the output; the format has no trailer of its own.
func (w *Writer) Close() error { return w.out.Close() }
