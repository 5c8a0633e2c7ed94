// Package jsonl reads traces that were written as JSON lines, the exact text
// form of trace.Record described in docs/formats/jsonl.md. It takes any
// spelling that JSON allows: white space, keys in any order, escapes.
package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/internal/jsontext"
	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

// Options say how to read.
type Options struct {
	// Strict makes unknown keys and text that is not UTF-8 errors. Otherwise
	// such keys are skipped and such bytes kept.
	Strict bool
}

// Reader decodes records. All errors are sticky.
type Reader struct {
	r io.Reader

	buf     []byte // buf[next:] is read but not decoded
	next    int
	offset  int64 // of buf[0] in the input
	eof     bool
	started bool // the format line was read
	err     error

	p *Parser
}

var _ trace.Reader = (*Reader)(nil)

// New returns a Reader of r.
func New(r io.Reader, opts Options) *Reader {
	return &Reader{r: r, buf: make([]byte, 0, 64<<10), p: NewParser(opts.Strict)}
}

// ReadRecord fills r with the next record. Fields that the line does not name
// are zero; the strings of r are the caller's to keep, its slices are not.
func (d *Reader) ReadRecord(r *trace.Record) error {
	if d.err == nil {
		d.err = d.read(r)
	}
	return d.err
}

func (d *Reader) read(r *trace.Record) error {
	for {
		line, offset, err := d.line()
		if err != nil {
			return err
		}
		d.p.Reset(line)
		if d.p.Blank() {
			continue
		}
		if !d.started {
			d.started = true
			d.p.formatLine()
			if d.p.Err() != nil {
				return d.syntax(offset, line)
			}
			continue
		}
		d.p.Record(r, nil)
		if d.p.Err() != nil {
			return d.syntax(offset, line)
		}
		return nil
	}
}

// syntax turns the parser's error in line, which starts at offset, into a
// SyntaxError. What goes wrong at the very end of a last line that has no line
// end is a cut, not a mistake.
func (d *Reader) syntax(offset int64, line []byte) error {
	err := d.p.Err()
	if d.eof && d.next == len(d.buf) && errors.Is(err, jsontext.ErrEnd) && !bytes.HasSuffix(line, []byte("\n")) {
		err = trace.ErrTruncated
	} else if errors.Is(err, jsontext.ErrDepth) {
		err = fmt.Errorf("%w: %w", trace.ErrLimit, err)
	} else if !errors.Is(err, trace.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", trace.ErrMalformed, err)
	}
	return &trace.SyntaxError{Format: "jsonl", Offset: offset + int64(d.p.Offset()), Err: err}
}

// line returns the next line with its end, if it has one, and its offset.
func (d *Reader) line() ([]byte, int64, error) {
	scanned := d.next
	for {
		if i := bytes.IndexByte(d.buf[scanned:], '\n'); i >= 0 {
			line, offset := d.buf[d.next:scanned+i+1], d.offset+int64(d.next)
			d.next = scanned + i + 1
			return line, offset, nil
		}
		scanned = len(d.buf)
		if d.eof {
			if d.next == len(d.buf) {
				if !d.started {
					return nil, 0, &trace.SyntaxError{Format: "jsonl", Offset: d.offset + int64(d.next), Err: trace.ErrTruncated}
				}
				return nil, 0, io.EOF
			}
			line, offset := d.buf[d.next:], d.offset+int64(d.next)
			d.next = len(d.buf)
			return line, offset, nil
		}
		if scanned-d.next > wire.MaxLine {
			return nil, 0, &trace.SyntaxError{
				Format: "jsonl", Offset: d.offset + int64(d.next),
				Err: fmt.Errorf("line of more than %d bytes: %w", wire.MaxLine, trace.ErrLimit),
			}
		}
		if d.next > 0 {
			d.offset += int64(d.next)
			d.buf = d.buf[:copy(d.buf, d.buf[d.next:])]
			scanned -= d.next
			d.next = 0
		}
		if err := d.fill(); err != nil {
			return nil, 0, err
		}
	}
}

// fill reads once into the free space of buf, which doubles when it is used up.
func (d *Reader) fill() error {
	if len(d.buf) == cap(d.buf) {
		grown := make([]byte, len(d.buf), 2*cap(d.buf))
		copy(grown, d.buf)
		d.buf = grown
	}
	for range 100 {
		n, err := d.r.Read(d.buf[len(d.buf):cap(d.buf)])
		d.buf = d.buf[:len(d.buf)+n]
		if errors.Is(err, io.EOF) {
			d.eof = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading jsonl: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}
