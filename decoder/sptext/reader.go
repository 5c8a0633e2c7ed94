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
	r    io.Reader
	opts Options

	buf    []byte // buf[at:end] is read and not used yet
	at     int
	end    int
	offset int64 // offset of buf[0] in the input
	ioErr  error // error with which the input ended

	err     error          // what ReadRecord returns after everything is delivered
	started bool           // the first line was read
	ends    bool           // the text marks its end
	ready   []trace.Record // records to deliver first: header, process
	pending []pending      // calls whose stack is not complete
	given   int            // number of pending calls that were delivered
	args    []trace.Arg    // of the pending calls
	frames  []uint64
	names   []string // as long as frames, or empty
	stack   trace.Stack
	closed  bool // the stack of the pending calls is complete

	timestamp time.Time
	resources []trace.Resource
	guessed   bool // resources are declared by the calls
	interned  map[string]string

	line    []byte
	lineAt  int64  // offset of the line in the input
	again   bool   // the line is to be parsed again
	bare    bool   // the line has no line feed, for one of two reasons:
	cut     bool   // legacy: it continues in the next piece; else the input ends
	partial []byte // legacy: the pieces of a comment so far
}

// pending is a call that waits for its stack.
type pending struct {
	seq, id, size uint64
	time          int64
	op            trace.Op
	context       uint32
	resource      uint32
	function      string
	firstArg      int // arguments are args[firstArg:endArg]
	endArg        int
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
	return &Reader{r: r, opts: opts, interned: make(map[string]string)}, nil
}

// Timestamp returns the time in the header line, once the header is read. Unlike the
// time in a record it can be in any year: the dates of functracer, read in the other
// order as the original does, are in the first century.
func (d *Reader) Timestamp() time.Time { return d.timestamp }

// ReadRecord implements trace.Reader.
func (d *Reader) ReadRecord(r *trace.Record) error {
	for {
		if d.closed {
			if d.given < len(d.pending) {
				d.giveCall(r)
				return nil
			}
			d.resetGroup()
		}
		if len(d.ready) > 0 {
			*r = d.ready[0]
			d.ready = append(d.ready[:0], d.ready[1:]...)
			return nil
		}
		if d.err != nil {
			return d.err
		}
		line, err := d.nextLine()
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
		err = d.syntaxError(d.offset, trace.ErrTruncated)
	}
	d.err = err
	if d.closeGroup() && errors.Is(err, trace.ErrTruncated) {
		d.stack.End = trace.StackTruncated
	}
}

func (d *Reader) syntaxError(offset int64, err error) error {
	return &trace.SyntaxError{Format: wire.Format, Offset: offset, Err: err}
}

// giveCall makes a record of the next pending call.
func (d *Reader) giveCall(r *trace.Record) {
	p := &d.pending[d.given]
	d.given++
	r.Kind = trace.KindCall
	r.Time = p.time
	r.PID, r.TID, r.CPU = 0, 0, 0
	c := &r.Call
	c.Seq, c.Op, c.Function, c.Resource = p.seq, p.op, p.function, p.resource
	c.ID, c.OldID, c.Size, c.EntryTime, c.Context = p.id, 0, p.size, 0, p.context
	c.Index, c.Caller, c.Thread = 0, trace.Caller{}, 0
	c.Stack = d.stack
	c.Args = d.args[p.firstArg:p.endArg:p.endArg]
}

// closeGroup ends the stack of the pending calls. It returns false if there are none.
func (d *Reader) closeGroup() bool {
	if len(d.pending) == 0 {
		return false
	}
	d.stack = trace.Stack{Frames: d.frames, Names: d.names, End: trace.StackUnknown}
	if len(d.frames) == 0 && !d.opts.Legacy {
		d.stack.End = trace.StackAbsent
	}
	d.given = 0
	d.closed = true
	return true
}

func (d *Reader) resetGroup() {
	d.closed = false
	d.given = 0
	clear(d.pending) // release the strings
	d.pending = d.pending[:0]
	clear(d.args)
	d.args = d.args[:0]
	d.frames = d.frames[:0]
	clear(d.names)
	d.names = d.names[:0]
}

// intern returns b as a string. It returns the same string for the same bytes, up to a
// limit of the number of strings.
func (d *Reader) intern(b []byte) string {
	if s, ok := d.interned[string(b)]; ok {
		return s
	}
	if len(d.interned) >= maxInterned {
		clear(d.interned)
	}
	s := string(b)
	d.interned[s] = s
	return s
}
