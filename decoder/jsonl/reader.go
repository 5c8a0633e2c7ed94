// Package jsonl reads traces written as JSON lines: the exact text form of trace.Record
// that docs/formats/jsonl.md describes. It accepts every spelling that JSON allows:
// white space, keys in any order, escapes.
package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/internal/jsontext"
	wire "rtrace-bpf/internal/wire/jsonl"
	"rtrace-bpf/trace"
)

// Options are the options of a Reader.
type Options struct {
	// Strict makes unknown keys and text that is not UTF-8 errors. Otherwise unknown
	// keys are skipped and such bytes are kept.
	Strict bool
}

// Reader decodes records. All errors are sticky.
type Reader struct {
	lines   *jsontext.Lines
	p       *jsonrecord.Parser
	started bool // the first line was read
	err     error
}

var _ trace.Reader = (*Reader)(nil)

// New returns a Reader of r.
func New(r io.Reader, opts Options) *Reader {
	return &Reader{lines: jsontext.NewLines(r, wire.MaxLine), p: jsonrecord.NewParser(opts.Strict)}
}

// ReadRecord fills r with the next record. Fields that the line does not name are zero.
// The caller may keep the strings of r; the slices are valid until the next call.
func (d *Reader) ReadRecord(r *trace.Record) error {
	if d.err == nil {
		d.err = d.read(r)
	}
	return d.err
}

func (d *Reader) read(r *trace.Record) error {
	for {
		line, offset, err := d.next()
		if err != nil {
			return err
		}
		d.p.Reset(line)
		if d.p.Blank() {
			continue
		}
		if !d.started {
			d.started = true
			d.formatLine()
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

// formatLine reads the first line of a file.
func (d *Reader) formatLine() {
	var (
		p       = d.p
		format  string
		version uint64
	)
	for p.Open('{'); p.More('}'); {
		switch key := p.Key(); string(key) {
		case "format":
			format = p.String()
		case "version":
			version = p.Uint(math.MaxUint64)
		default:
			p.Unknown(key)
		}
	}
	p.End()
	switch {
	case p.Err() != nil:
	case format != wire.Format:
		p.Fail(0, fmt.Errorf("the first line does not contain \"format\":%q", wire.Format))
	case version == 0 || version > wire.Version:
		p.Fail(0, fmt.Errorf("version %d is %w", version, trace.ErrUnsupported))
	}
}

// syntax turns the parser's error in line, which starts at offset, into a SyntaxError.
// An error at the very end of a last line that has no line feed means that the input
// was cut.
func (d *Reader) syntax(offset int64, line []byte) error {
	err := d.p.Err()
	if d.lines.Ended() && errors.Is(err, jsontext.ErrEnd) && !bytes.HasSuffix(line, []byte("\n")) {
		err = trace.ErrTruncated
	} else if errors.Is(err, jsontext.ErrDepth) {
		err = fmt.Errorf("%w: %w", trace.ErrLimit, err)
	} else if !errors.Is(err, trace.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", trace.ErrMalformed, err)
	}
	return &trace.SyntaxError{Format: "jsonl", Offset: offset + int64(d.p.Offset()), Err: err}
}

// next returns the next line, with its line feed if it has one, and its offset.
func (d *Reader) next() ([]byte, int64, error) {
	line, offset, err := d.lines.Next()
	switch {
	case err == nil:
		return line, offset, nil
	case errors.Is(err, io.EOF) && d.started:
		return nil, 0, io.EOF
	case errors.Is(err, io.EOF):
		err = trace.ErrTruncated
	case errors.Is(err, jsontext.ErrLong):
		err = fmt.Errorf("line of more than %d bytes: %w", wire.MaxLine, trace.ErrLimit)
	default:
		return nil, 0, fmt.Errorf("reading jsonl: %w", err)
	}
	return nil, 0, &trace.SyntaxError{Format: "jsonl", Offset: offset, Err: err}
}
