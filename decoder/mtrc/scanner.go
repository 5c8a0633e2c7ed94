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

// Scanner delivers the events of a file in their order. It checks nothing but
// their form: indices and addresses are what the file says.
type Scanner struct {
	in     window.Window
	opts   Options
	header wire.Header
	source bool  // events of this stream have a Source
	whole  bool  // the stream ended with a trailer
	err    error // what Next returns; io.EOF behind the stream
	last   int64 // offset of the event that Next delivered last
	stats  ScanStats

	functions, files names
}

// ScanStats counts what a Scanner has read.
type ScanStats struct {
	Streams uint64 // that were begun
	// Cut is how many streams had no trailer, but another stream behind them.
	Cut       uint64
	Junk      int64  // bytes behind the last trailer
	Undefined uint64 // names given by an id that was not defined: read as no name
	ZeroIDs   uint64 // names defined under id 0: used once
	LongNames uint64 // definitions that mptrace refuses, of more than wire.MaxName bytes
	HighIDs   uint64 // definitions that mptrace crashes at, of ids above wire.Names
}

// errEnd says that there is no record.
var errEnd = errors.New("no record")

// NewScanner reads the header and returns a scanner of what follows. It fails
// with a *trace.SyntaxError if r does not start with one.
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

// first reads the header that the input begins with.
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

// Offset returns how many bytes of the input were read.
func (s *Scanner) Offset() int64 { return s.in.Offset() }

// Stats returns the counters so far.
func (s *Scanner) Stats() ScanStats { return s.stats }

// Whole reports whether the current stream has ended with its trailer.
func (s *Scanner) Whole() bool { return s.whole }

// Next sets e to the next event of the current stream; its strings are the
// caller's. It returns io.EOF behind the last one, and a *trace.SyntaxError
// where the input is cut or breaks the format, whose offset is that of the
// record. Errors are sticky.
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

// count steps over a record of n bytes that has what no writer sends.
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

// fail makes err, met at the current offset, sticky.
func (s *Scanner) fail(err error) error {
	s.err = syntaxError(s.Offset(), err)
	return s.err
}

// cut fails since the input ended, or with the error that reading it met.
func (s *Scanner) cut(what string) error {
	if !errors.Is(s.in.Err(), io.EOF) {
		s.err = s.in.Err()
		return s.err
	}
	return s.fail(fmt.Errorf("%s: %w", what, trace.ErrTruncated))
}

// begin reads a header; its magic is at hand.
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

// peekHeader looks at the header at the current offset, whose magic is at hand.
func (s *Scanner) peekHeader() (h wire.Header, n int, err error) {
	for need := len(wire.Magic) + 1; ; need++ {
		h, n, err = parseHeader(s.in.Bytes()[len(wire.Magic):])
		if !errors.Is(err, errShort) || !s.in.Have(need) {
			return h, n + len(wire.Magic), err
		}
	}
}

// end ends the stream where no record is. That is the trailer, or else the
// magic of another stream: a process that was forked writes its own behind what
// its parent had written so far.
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
			return s.fail(malformed("the trailer is missing in front of another stream"))
		}
		s.stats.Cut++
	} else {
		s.in.Skip(len(wire.Magic))
		s.whole = true
	}
	s.err = io.EOF
	return s.err
}

// another reports whether the magic at the current offset begins a stream of a
// version that was released, not just ends one.
func (s *Scanner) another() bool {
	if !s.in.Have(len(wire.Magic) + 1) {
		return false
	}
	if c := s.in.Bytes()[len(wire.Magic)]; c > 1 {
		return false // do not wait for more of what is no header
	}
	h, _, err := s.peekHeader()
	return err == nil && h.Version >= wire.VersionFirst
}

// NextStream goes to the next stream of the file, over what is left of the
// current one, and reports whether there is one. Streams follow each other at
// once; other bytes behind a trailer are counted and not read any further.
func (s *Scanner) NextStream() (bool, error) {
	var e wire.Event
	for s.err == nil {
		_ = s.Next(&e) // it is sticky
	}
	if !errors.Is(s.err, io.EOF) {
		return false, s.err
	}
	if more, err := s.beginNext(); more || err != nil {
		return more, err
	}
	return false, s.junk()
}

// beginNext reads the header of the stream that follows at once, if one does.
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
			return s.fail(malformed("bytes behind the trailer"))
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
