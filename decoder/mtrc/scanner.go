package mtrc

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/internal/window"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// Scanner returns the events of a file in order. It checks only their form: indices and
// addresses are as they are in the file.
type Scanner struct {
	in     window.Window
	opts   Options
	header wire.Header
	source bool  // events of this stream have a Source
	whole  bool  // the stream ended with a trailer
	err    error // what Next returns; io.EOF after the stream
	last   int64 // offset of the event that Next returned last
	stats  ScanStats

	functions, files names
}

// ScanStats counts what a Scanner has read.
type ScanStats struct {
	Streams uint64 // started
	// Cut counts the streams without a trailer that were followed by another stream.
	Cut       uint64
	Junk      int64  // bytes after the last trailer
	Undefined uint64 // ids of names that were not defined: read as no name
	ZeroIDs   uint64 // names defined with id 0: used once
	LongNames uint64 // definitions of more than wire.MaxName bytes, which mptrace refuses
	HighIDs   uint64 // definitions of ids above wire.Names, at which mptrace crashes
}

// errEnd is the error for bytes that begin no record.
var errEnd = errors.New("no record")

// NewScanner reads the header and returns a scanner of what follows. It returns a
// *trace.SyntaxError if r does not start with a header.
func NewScanner(r io.Reader, o Options) (*Scanner, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Scanner{in: window.New(r, window.Size), opts: o}
	if err := s.first(); err != nil {
		return nil, err
	}
	return s, nil
}

// first reads the header at the start of the input.
func (s *Scanner) first() error {
	if !s.in.Have(len(wire.Magic)) {
		return s.cut("the magic is missing")
	}
	if !bytes.HasPrefix(s.in.Bytes(), []byte(wire.Magic)) {
		return s.fail(malformed("the magic %s is missing", wire.Magic))
	}
	return s.begin()
}

// Header returns the header of the current stream.
func (s *Scanner) Header() wire.Header { return s.header }

// Offset returns how many bytes of the input were consumed.
func (s *Scanner) Offset() int64 { return s.in.Offset() }

// Stats returns the counters so far.
func (s *Scanner) Stats() ScanStats { return s.stats }

// Whole reports whether the current stream has ended with its trailer.
func (s *Scanner) Whole() bool { return s.whole }

// Next sets e to the next event of the current stream. The strings belong to the
// caller. It returns io.EOF after the last event, and a *trace.SyntaxError with the
// offset of the record where the input is cut or breaks the format. Errors are sticky.
func (s *Scanner) Next(e *wire.Event) error {
	for s.err == nil {
		if len(s.in.Bytes()) == 0 {
			if !s.in.More() {
				return s.cut("the trailer is missing")
			}
		}
		n, odd, err := s.event(s.in.Bytes(), e)
		if err == nil {
			s.last = s.Offset()
			if odd != noneOdd {
				return s.count(odd, n)
			}
			s.in.Skip(n)
			return nil
		}
		switch {
		case errors.Is(err, errEnd):
			return s.end()
		case !errors.Is(err, errShort):
			return s.fail(fmt.Errorf("record %c: %w", e.Kind, err))
		case !s.in.More():
			return s.cut(fmt.Sprintf("record %c", e.Kind))
		}
	}
	return s.err
}

var noneOdd odd

// count counts what no writer produces in a record of n bytes, and skips the record.
func (s *Scanner) count(o odd, n int) error {
	s.stats.Undefined += uint64(o.undefined)
	s.stats.ZeroIDs += uint64(o.zero)
	s.stats.LongNames += uint64(o.long)
	s.stats.HighIDs += uint64(o.high)
	if s.opts.Strict && o.undefined > 0 {
		return s.fail(malformed("name with an id that is not defined"))
	}
	if s.opts.Strict && o.zero > 0 {
		return s.fail(malformed("name defined under id 0"))
	}
	s.in.Skip(n)
	return nil
}

// fail makes err at the current offset the sticky error.
func (s *Scanner) fail(err error) error {
	s.err = syntaxError(s.Offset(), err)
	return s.err
}

// cut makes the end of the input, or the error of reading it, the sticky error.
func (s *Scanner) cut(what string) error {
	if !errors.Is(s.in.Err(), io.EOF) {
		s.err = s.in.Err()
		return s.err
	}
	return s.fail(fmt.Errorf("%s: %w", what, trace.ErrTruncated))
}

// begin reads a header whose magic is in the window.
func (s *Scanner) begin() error {
	h, n, err := s.peekHeader()
	if errors.Is(err, errShort) {
		return s.cut("header")
	}
	if err != nil {
		return s.fail(err)
	}
	s.in.Skip(n)
	s.header, s.source = h, h.HasSource()
	s.whole, s.err = false, nil
	s.functions.clear()
	s.files.clear()
	s.stats.Streams++
	return nil
}

// peekHeader parses the header at the current offset, whose magic is in the window.
func (s *Scanner) peekHeader() (h wire.Header, n int, err error) {
	for need := len(wire.Magic) + 1; ; need++ {
		h, n, err = parseHeader(s.in.Bytes()[len(wire.Magic):])
		if !errors.Is(err, errShort) || !s.in.Have(need) {
			return h, n + len(wire.Magic), err
		}
	}
}

// end ends the stream where no record follows: at the trailer, or at the magic of
// another stream. A forked process writes its own stream after what its parent had
// written so far.
func (s *Scanner) end() error {
	if !s.in.Have(len(wire.Magic)) && bytes.HasPrefix([]byte(wire.Magic), s.in.Bytes()) {
		return s.cut("the trailer is missing")
	}
	b := s.in.Bytes()
	if !bytes.HasPrefix(b, []byte(wire.Magic)) {
		return s.fail(malformed("record of unknown type 0x%02x", b[0]))
	}
	if s.another() {
		if s.opts.Strict {
			return s.fail(malformed("the trailer is missing before another stream"))
		}
		s.stats.Cut++
	} else {
		s.in.Skip(len(wire.Magic))
		s.whole = true
	}
	s.err = io.EOF
	return s.err
}

// another reports whether the magic at the current offset begins a stream of a released
// version, instead of ending the current one.
func (s *Scanner) another() bool {
	if !s.in.Have(len(wire.Magic) + 1) {
		return false
	}
	if c := s.in.Bytes()[len(wire.Magic)]; c > 1 {
		return false // it is no header: do not wait for more
	}
	h, _, err := s.peekHeader()
	return err == nil && h.Version >= wire.VersionFirst
}

// NextStream skips the rest of the current stream and reports whether another one
// follows. Streams follow each other directly; other bytes after a trailer are counted
// and not parsed.
func (s *Scanner) NextStream() (bool, error) {
	var e wire.Event
	for s.err == nil {
		_ = s.Next(&e) // the error is sticky
	}
	if !errors.Is(s.err, io.EOF) {
		return false, s.err
	}
	if more, err := s.beginNext(); more || err != nil {
		return more, err
	}
	return false, s.junk()
}

// beginNext reads the header of the stream that follows directly, if there is one.
func (s *Scanner) beginNext() (bool, error) {
	if s.in.Have(len(wire.Magic)) && bytes.HasPrefix(s.in.Bytes(), []byte(wire.Magic)) {
		if _, _, err := s.peekHeader(); !errors.Is(err, trace.ErrMalformed) {
			err := s.begin()
			return err == nil, err
		}
	}
	return false, nil
}

// junk reads the input to its end.
func (s *Scanner) junk() error {
	start := s.Offset()
	for len(s.in.Bytes()) > 0 || s.in.More() {
		if s.opts.Strict {
			return s.fail(malformed("bytes after the trailer"))
		}
		s.in.Skip(len(s.in.Bytes()))
	}
	s.stats.Junk += s.Offset() - start
	if !errors.Is(s.in.Err(), io.EOF) {
		s.err = s.in.Err()
		return s.err
	}
	return nil
}
