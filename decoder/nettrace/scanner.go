package nettrace

import (
	"errors"
	"fmt"
	"io"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// Scanner returns the events of a stream in the order of their times, as far as the
// stream allows: events that come late are returned late. It uses memory for the events
// between two sorted ones, and for the stacks between two sequence points.
type Scanner struct {
	in    input
	opts  Options
	info  Info
	v6    bool
	stats counters
	dump  *dumper // nil: nothing is dumped
	base  int64   // offset of the current block's payload
	begin int64   // offset of the current object or block

	queue  queue
	high   uint64 // newest time of the delivered events
	now    Event  // what Next returns
	tables        // what events refer to
	points uint64 // number of sequence points that were passed
	after  func() // what a block does after the events before it are delivered
	err    error  // returned after those are delivered
}

// counters counts what a Scanner has read.
type counters struct {
	ScanStats                              // without Objects
	blocks    [wire.BlockLabels + 1]uint64 // objects and blocks by kind
}

// ScanStats counts what a Scanner has read.
type ScanStats struct {
	Objects  map[string]uint64 // by the name of the object or the kind of the block
	Metadata uint64            // descriptions of events
	Events   uint64
	Stacks   uint64 // including empty ones
	Frames   uint64 // of the stacks
	Lost     uint64 // missing events, from the gaps in their numbers
	// Unknown counts skipped objects and blocks of unknown kinds.
	Unknown uint64
	// Undescribed counts events without a description.
	Undescribed uint64
	// NoStack counts events that refer to a missing stack.
	NoStack uint64
	// Late counts events that came after newer ones had been delivered.
	Late uint64
	// Unordered counts how often events were delivered, to save memory, before it was
	// known that no older ones follow.
	Unordered uint64
	Junk      int64 // bytes after the end
}

// NewScanner reads the beginning of a stream. It returns a *trace.SyntaxError if r does
// not begin with one.
func NewScanner(r io.Reader, o Options) (*Scanner, error) {
	s := &Scanner{in: input{r: r}, opts: o}
	if err := s.head(); err != nil {
		return nil, err
	}
	return s, nil
}

// Info returns the contents of the beginning of the stream. The scanner owns its Pairs.
func (s *Scanner) Info() Info { return s.info }

// Stats returns the counters so far. The caller owns the map.
func (s *Scanner) Stats() ScanStats {
	stats := s.stats.ScanStats
	stats.Objects = s.stats.objects(s.v6)
	return stats
}

// Next returns the next event, which is valid until the next call. After the last event
// it returns io.EOF, or a *trace.SyntaxError if the stream is cut or breaks the format.
// Errors are sticky.
func (s *Scanner) Next() (*Event, error) {
	for {
		if e, time := s.queue.pop(); e != nil {
			if time < s.high {
				s.stats.Late++
			} else {
				s.high = time
			}
			s.deliver(e, time)
			return &s.now, nil
		}
		s.queue.reset(s.in.release)
		s.queue.compact(s.in.release)
		if s.queue.waiting() == 0 {
			if s.after != nil {
				s.after()
				s.after = nil
			}
			s.threads.trim()
		}
		if s.err != nil {
			return nil, s.err
		}
		if err := s.step(); err != nil {
			s.err = err
			s.queue.flush()
		}
	}
}

// step reads the next object or block.
func (s *Scanner) step() error {
	if s.v6 {
		return s.blockV6()
	}
	return s.object()
}

// later runs do once all events before a block are delivered.
func (s *Scanner) later(do func()) {
	s.queue.flush()
	s.after = do
}

func (s *Scanner) fail(at int64, err error) error { return syntaxError(at, err) }

// cut returns the error for an input that ends within the named part, or the error of
// reading it.
func (s *Scanner) cut(what string) error {
	if !errors.Is(s.in.err, io.EOF) {
		return s.in.err
	}
	return syntaxError(s.in.offset, fmt.Errorf("%s: %w", what, trace.ErrTruncated))
}

// head reads the beginning of the stream up to the trace object.
func (s *Scanner) head() error {
	magic := s.in.bytes(len(wire.Magic))
	if len(magic) >= 4 && string(magic[:4]) == magicV3[:4] {
		return s.fail(0, fmt.Errorf("version 3 (netperf) is %w; record it again as nettrace, which is version 4", trace.ErrUnsupported))
	}
	if string(magic) != wire.Magic[:len(magic)] {
		return s.fail(0, malformed("the magic %s is missing", wire.Magic))
	}
	if len(magic) < len(wire.Magic) {
		return s.cut("the magic is missing")
	}
	word := s.in.bytes(4)
	if len(word) < 4 {
		return s.cut("head")
	}
	c := cursor{b: word}
	switch size := c.u32(); size {
	case 0:
		s.v6 = true
		return s.headV6()
	case uint32(len(wire.Serializer)):
		return s.headV4()
	default:
		return s.fail(8, malformed("name of the serializer with %d bytes, not %d", size, len(wire.Serializer)))
	}
}

// check returns an error if the beginning of the stream makes reading the rest
// impossible.
func (s *Scanner) check(at int64) error {
	if s.info.PointerSize != 4 && s.info.PointerSize != 8 {
		return s.fail(at, malformed("pointers of %d bytes", s.info.PointerSize))
	}
	if s.info.Frequency == 0 || s.info.Frequency > 1<<62 {
		return s.fail(at, malformed("clock of %d ticks a second", s.info.Frequency))
	}
	if s.dump != nil {
		s.dump.head(&s.info)
	}
	s.stacks.size = s.info.PointerSize
	s.threads.process = uint64(s.info.ProcessID)
	return nil
}

// skipped counts an object or block of an unknown kind.
func (s *Scanner) skipped(at int64, what string) error {
	if s.opts.Strict {
		return s.fail(at, fmt.Errorf("%s is %w", what, trace.ErrUnsupported))
	}
	s.stats.Unknown++
	return nil
}

// block reads a block, given its payload at offset at. The payload is shorter than size
// if the input ended in it. The scanner owns the payload until the function returns or,
// if events point into it, until those are delivered.
func (s *Scanner) block(kind wire.BlockKind, b []byte, at int64, size int) error {
	cut := len(b) < size
	c := cursor{b: b}
	s.base = at
	s.dump.block(kind, b, s.begin, at, size)
	kept := false // something points into the payload
	switch kind {
	case wire.BlockEvent:
		kept = true
		s.eventBlock(&c, at)
	case wire.BlockMetadata:
		if s.v6 {
			s.metadataRows(&c)
		} else {
			s.metadataBlock(&c)
		}
	case wire.BlockStack:
		s.stackBlock(&c)
	case wire.BlockSequence:
		s.sequencePoint(&c)
	case wire.BlockThread:
		s.threadRows(&c)
	case wire.BlockRemoveThread:
		s.removeThreads(&c)
	case wire.BlockLabels:
		s.labelBlock(&c)
	}
	if !kept {
		s.in.release(b)
	}
	switch {
	case cut && (c.err == nil || c.end):
		return s.cut(kind.String() + " block")
	case c.err != nil:
		return s.fail(at+int64(c.i), fmt.Errorf("%s block: %w", kind, c.err))
	}
	return nil
}

// eventBlock puts the events of a block into the queue.
func (s *Scanner) eventBlock(c *cursor, base int64) {
	s.queue.begin(c.b, base)
	sorted, marked := uint64(0), false
	compressed := c.eventsHead()
	var h head
	for c.left() > 0 {
		at := c.i
		payload := c.event(&h, compressed, s.v6)
		if c.err == nil {
			if h.Sorted {
				sorted, marked = h.Time, true
			}
			c.err = s.event(&h, at, payload)
		}
		if c.err != nil {
			c.i = at // more helpful than the place of a field
		}
	}
	switch {
	case marked:
		s.queue.release(sorted)
	case s.queue.bytes > maxPending || s.queue.waiting() > maxQueue:
		s.stats.Unordered++
		s.queue.flush()
	}
}

// event puts an event into the queue. It begins at at in its block, and its payload at
// payload.
func (s *Scanner) event(h *head, at, payload int) error {
	capture, err := s.threads.find(h.Capture, s.v6)
	if err != nil {
		return err
	}
	thread := capture
	if h.Thread != h.Capture {
		if thread, err = s.threads.find(h.Thread, s.v6); err != nil {
			return err
		}
	}
	if n := capture.count(h.Sequence, s.v6); n > 0 {
		s.missing(capture, n, h.Time)
	}
	capture.seen = h.Time
	if h.Labels != 0 && s.labels.find(h.Labels) == nil {
		return malformed("list of labels %d, which is unknown", h.Labels)
	}
	if s.opts.Strict {
		if s.meta.find(h.Metadata) == nil {
			return malformed("event of the kind %d, which is unknown", h.Metadata)
		}
		if _, ok := s.stacks.find(h.Stack); !ok && h.Stack != 0 {
			return malformed("stack %d, which is unknown", h.Stack)
		}
	}
	e := s.queue.add(h.Time)
	e.metadata, e.sequence, e.processor, e.stack, e.size = h.Metadata, h.Sequence, h.Processor, h.Stack, h.Size
	e.block, e.at, e.head, e.sorted = uint32(len(s.queue.blocks)-1), uint32(at), uint8(payload-at), h.Sorted
	e.capture, e.thread = capture.slot, thread.slot
	if e.activity, e.related = h.activity, h.related; s.v6 {
		e.activity = h.Labels
	}
	if s.dump != nil {
		s.dump.event(h, s.meta.find(h.Metadata), s.queue.blocks[e.block].b, at, payload)
	}
	s.stats.Events++
	return nil
}

// deliver makes the Event that Next returns from an entry of the queue.
func (s *Scanner) deliver(from *entry, time uint64) {
	e := &s.now
	thread := s.threads.all[from.thread]
	if from.block == noBlock {
		gap := s.queue.lost[from.at]
		*e = Event{Head: wire.Head{Time: time}, Thread: thread, Lost: gap.count, Since: gap.since}
		return
	}
	e.Metadata, e.Sequence, e.Processor, e.Head.Stack = from.metadata, from.sequence, from.processor, from.stack
	e.Time, e.Size, e.Sorted, e.Lost = time, from.size, from.sorted, 0
	// A pointer that does not change is not written, because writing costs time during
	// garbage collection.
	if e.Thread != thread {
		e.Thread = thread
	}
	capture := thread
	if from.capture != from.thread {
		capture = s.threads.all[from.capture]
	}
	block := &s.queue.blocks[from.block]
	if s.v6 {
		e.Head.Thread, e.Capture = thread.Index, capture.Index
		e.Head.Labels, e.Labels = from.activity, s.labels.find(from.activity)
	} else {
		e.Head.Thread, e.Capture = thread.ID, capture.ID
		if from.activity|from.related != 0 || e.Activity != nil || e.Related != nil {
			e.Activity, e.Related = block.id(from.activity), block.id(from.related)
		}
	}
	e.Offset = block.base + int64(from.at)
	payload := from.at + uint32(from.head)
	end := payload + from.size
	e.Payload = block.b[payload:end:end]
	if meta := s.meta.find(from.metadata); e.Meta != meta {
		e.Meta = meta
	}
	if e.Meta == nil {
		s.stats.Undescribed++
	}
	frames, ok := []uint64(nil), true
	if from.stack != 0 {
		frames, ok = s.stacks.find(from.stack)
	}
	if e.Stack = frames; !ok {
		s.stats.NoStack++
	}
}

// id returns the id of an activity at place i, or nil if i is 0.
func (h *held) id(i uint32) *[16]byte {
	if i == 0 {
		return nil
	}
	return (*[16]byte)(h.b[i:])
}

// missing adds a note that events of a thread are missing.
func (s *Scanner) missing(t *Thread, n, time uint64) {
	s.stats.Lost += n
	s.queue.note(t, n, time)
}
