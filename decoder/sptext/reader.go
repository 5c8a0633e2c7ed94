// Package sptext reads the text of the sp-rtrace post-processor and of functracer.
// docs/formats/sptext.md describes it.
//
// The format is lenient: a line that is nothing else is a comment. So the only errors
// are those of the input, an exceeded limit, and text that cannot be a trace.
package sptext

import (
	"errors"
	"io"
	"time"

	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// Options are the options of a Reader.
type Options struct {
	// Legacy reads as the original parser does, including its errors: argument values
	// end at white space, names of contexts are lost, lines are split into pieces of
	// 4095 bytes, numbers have 32 bits, and nothing is unquoted.
	Legacy bool
	// Location is the time zone of the header's time; nil is the local one.
	Location *time.Location
	// Warn, if not nil, is called with each warning that the original parser would
	// print, including its line feed. Without Legacy there are none.
	Warn func(text string)
	// MaxGroup bounds how many calls that share one stack are held until the stack is
	// read; 0 means 1<<24.
	MaxGroup int
}

// Limits. Everything beyond the limit is dropped: the rest of a line, frames and
// arguments.
const (
	maxLine     = 1 << 20
	maxFrames   = 1 << 16
	maxArgs     = 1 << 16
	maxGroup    = 1 << 24
	maxInterned = 1 << 16 // number of interned strings
	bufferSize  = 256 << 10
)

// Reader is a trace.Reader. What a Record refers to is valid until the next call,
// except strings, which belong to the caller.
type Reader struct {
	opts      Options
	lines     lines
	texts     texts
	group     group
	resources resources

	err       error          // what ReadRecord returns after everything is delivered
	started   bool           // the first line was read
	ends      bool           // the text marks its end
	ready     []trace.Record // records to deliver first: header, process
	timestamp time.Time
	partial   []byte // legacy: the pieces of a comment so far
}

var _ trace.Reader = (*Reader)(nil)

// New returns a Reader. It does not read before the first ReadRecord.
func New(r io.Reader, opts Options) (*Reader, error) {
	if r == nil {
		return nil, errors.New("sptext: no reader given")
	}
	if opts.MaxGroup < 0 {
		return nil, errors.New("sptext: negative limit of calls per stack")
	}
	if opts.MaxGroup == 0 {
		opts.MaxGroup = maxGroup
	}
	if opts.Location == nil {
		opts.Location = time.Local
	}
	return &Reader{
		opts: opts, lines: lines{r: r, legacy: opts.Legacy},
		texts: texts{legacy: opts.Legacy, interned: make(map[string]string)},
	}, nil
}

// Timestamp returns the time in the header line, once the header is read. Unlike the
// time in a record it can be in any year: the dates of functracer, read in the other
// order as the original does, are in the first century.
func (d *Reader) Timestamp() time.Time { return d.timestamp }

// ReadRecord implements trace.Reader.
func (d *Reader) ReadRecord(r *trace.Record) error {
	for {
		if d.group.closed {
			if d.group.given < len(d.group.pending) {
				d.group.give(r)
				return nil
			}
			d.group.reset()
		}
		if len(d.ready) > 0 {
			*r = d.ready[0]
			d.ready = append(d.ready[:0], d.ready[1:]...)
			return nil
		}
		if d.err != nil {
			return d.err
		}
		line, err := d.lines.next()
		if err != nil {
			d.finish(err)
			continue
		}
		if !d.started {
			d.started = true
			d.first(line)
			d.announced()
			continue
		}
		ok, err := d.parse(line, r)
		if err != nil {
			d.finish(err)
		}
		if ok {
			return nil
		}
	}
}

// finish ends the trace with err, after the pending calls are delivered.
func (d *Reader) finish(err error) {
	d.flushPartial()
	if err == io.EOF && !d.started {
		err = d.syntaxError(d.lines.offset, trace.ErrTruncated)
	}
	d.err = err
	if d.group.close(d.opts.Legacy) && errors.Is(err, trace.ErrTruncated) {
		d.group.stack.End = trace.StackTruncated
	}
}

func (d *Reader) syntaxError(offset int64, err error) error {
	return &trace.SyntaxError{Format: wire.Format, Offset: offset, Err: err}
}
