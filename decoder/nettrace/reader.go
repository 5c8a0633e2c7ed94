package nettrace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// Reader reads the records of a stream. It is a trace.Reader; docs/formats/nettrace.md
// describes which events become which records. Strings belong to the caller.
type Reader struct {
	s     *Scanner
	opts  Options
	stats Stats

	begun  bool // the first event was handled
	out    records
	ending ending
	plans  plans

	seq       uint64
	resources map[string]uint32 // by what allocates
	format    formatter
	args      []trace.Arg
	symbols   symbols
	mappings  mappings
	process   string // name of the process, as far as it is known
	own       own
}

// Stats counts what a Reader has read.
type Stats struct {
	ScanStats
	Version string // "4", "6.0"
	Calls   uint64
	// Malformed counts payloads that do not match their description.
	Malformed uint64
}

// LostGap is the reason of losses that gaps in the numbers of events show.
const LostGap = "sequence gap"

var _ trace.Reader = (*Reader)(nil)

// NewReader reads the beginning of a stream and returns a reader of the rest. It
// returns a *trace.SyntaxError if r does not begin with one.
func NewReader(r io.Reader, o Options) (*Reader, error) {
	s, err := NewScanner(r, o)
	if err != nil {
		return nil, err
	}
	return &Reader{s: s, opts: o, plans: newPlans(s.info.PointerSize), resources: make(map[string]uint32)}, nil
}

// Stats returns the counters so far.
func (d *Reader) Stats() Stats {
	stats := d.stats
	stats.ScanStats = d.s.Stats()
	stats.Version = d.version()
	return stats
}

func (d *Reader) version() string {
	if d.s.info.Major < wire.MajorV6 {
		return fmt.Sprint(d.s.info.Major)
	}
	return fmt.Sprintf("%d.%d", d.s.info.Major, d.s.info.Minor)
}

// ReadRecord implements trace.Reader. Errors are sticky.
func (d *Reader) ReadRecord(rec *trace.Record) error {
	for {
		if d.out.take(rec) {
			return nil
		}
		if d.ending.err != nil {
			if d.symbols.next(rec) {
				return nil
			}
			return d.ending.next(rec)
		}
		e, err := d.s.Next()
		if !d.begun {
			d.begun = true
			d.begin(e)
		}
		if err != nil {
			d.ending = ending{err, errors.Is(err, io.EOF) && !d.own.active}
			continue
		}
		if d.event(rec, e) {
			if d.out.empty() {
				return nil
			}
			d.out.list = append(d.out.list, *rec) // after the records that it needs
		}
	}
}

// begin delivers the records for the beginning of the stream. e is the first event, or
// nil.
func (d *Reader) begin(e *Event) {
	if e != nil && e.Meta != nil && e.Meta.Provider == wire.ProviderOwn && d.beginOwn(e) {
		return
	}
	wall := d.wallTime()
	d.out.push(trace.KindHeader).Header = trace.Header{
		Format: wire.Format, Version: d.version(), PointerSize: d.s.info.PointerSize,
		Clock: trace.ClockMonotonic, WallTime: wall, ClockTime: d.s.info.Nanoseconds(d.s.info.Sync),
	}
	if d.s.info.ProcessID == 0 || e != nil && e.Meta != nil && d.plans.of(e.Meta).process {
		return // an event has it
	}
	rec := d.out.push(trace.KindProcess)
	rec.PID = int32(d.s.info.ProcessID)
	rec.Process = trace.Process{WallTime: wall, Depth: -1}
}

// wallTime returns when the clock had the time Info.Sync, in nanoseconds since 1970, or
// 0 if that is unknown.
func (d *Reader) wallTime() int64 {
	t := d.s.info.Time
	if t[0] < 1970 || t[0] > 2200 {
		return 0
	}
	return time.Date(int(t[0]), time.Month(t[1]), int(t[3]), int(t[4]), int(t[5]), int(t[6]), int(t[7])*1e6, time.UTC).UnixNano()
}

// event makes a record of an event and reports whether there is one.
func (d *Reader) event(rec *trace.Record, e *Event) bool {
	if d.own.active && (e.Lost > 0 || e.Meta == nil || e.Meta.Provider != wire.ProviderOwn) {
		return false
	}
	if t := e.Thread; t.Name != "" && !t.named && !d.own.active {
		t.named = true
		named := d.out.push(trace.KindThread)
		named.PID, named.TID = int32(t.Process), int32(t.ID)
		named.Thread.Name = t.Name
	}
	if e.Lost > 0 {
		d.start(rec, e, trace.KindLost)
		rec.CPU = 0
		rec.Lost = trace.Lost{Count: e.Lost, Reason: LostGap}
		if e.Since != 0 {
			rec.Lost.Since = d.s.info.Nanoseconds(e.Since)
		}
		return true
	}
	if e.Meta == nil {
		return false
	}
	p := d.plans.of(e.Meta)
	err := p.do(d, e, rec, p)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errNoRecord):
		return false
	case errors.Is(err, errFatal), d.opts.Strict:
		d.ending.err = syntaxError(e.Offset, fmt.Errorf("event %s: %w", e.Meta.Provider+"/"+p.name, err))
		return false
	}
	d.stats.Malformed++
	d.raw(rec, e, p)
	return true
}

// start sets the fields that all records share.
func (d *Reader) start(rec *trace.Record, e *Event, kind trace.Kind) {
	rec.Kind = kind
	rec.Time = d.s.info.Nanoseconds(e.Time)
	rec.PID, rec.TID, rec.CPU = int32(e.Thread.Process), 0, 0
	if e.Thread.ID <= math.MaxInt32 {
		rec.TID = int32(e.Thread.ID)
	}
	if e.Head.Thread == e.Capture && e.Processor < math.MaxInt32 {
		rec.CPU = int32(e.Processor) + 1
	}
}

// maxFrames is how many frames of a stack the runtime keeps.
const maxFrames = 100

// stack returns the stack of an event. The format does not record how it ends.
func (d *Reader) stack(e *Event) trace.Stack {
	switch {
	case len(e.Stack) == 0:
		return trace.Stack{}
	case len(e.Stack) == maxFrames && isRuntime(e.Meta.Provider):
		return trace.Stack{Frames: e.Stack, End: trace.StackTruncated}
	}
	return trace.Stack{Frames: e.Stack, End: trace.StackUnknown}
}

func isRuntime(provider string) bool {
	return provider != wire.ProviderSystem && provider != wire.ProviderUniverse && provider != wire.ProviderOwn
}
