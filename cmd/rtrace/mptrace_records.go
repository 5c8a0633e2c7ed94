package main

import (
	"errors"
	"io"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder/mtrc"
	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// recordSource is a trace of another format.
type recordSource struct {
	path  string
	t     *decoder.Trace
	stop  func() error
	index *mtrc.Indexer

	rec    trace.Record
	ahead  bool         // rec is the next record
	ended  bool         // the stream has ended; records without a header after it are another one
	events []wire.Event // events of rec that are not delivered yet
	bytes  int          // by address
	lost   uint64

	clock       trace.Clock
	start, last int64 // times; start is 0 before the first
	days        int64 // how often the clock of the day wrapped
}

func newRecordSource(name string, t *decoder.Trace, stop func() error) (mptraceSource, error) {
	s := &recordSource{path: name, t: t, stop: stop, index: mtrc.NewIndexer()}
	if err := s.peek(); !isSyntax(err) && err != io.EOF {
		return nil, errors.Join(err, stop())
	}
	s.begin()
	return s, nil
}

// peek reads the next record into rec.
func (s *recordSource) peek() error {
	if s.ahead {
		return nil
	}
	err := s.t.ReadRecord(&s.rec)
	s.ahead = err == nil
	return err
}

// begin reads the next record if it is a header. Otherwise the previous header stays valid.
func (s *recordSource) begin() {
	if s.bytes == 0 {
		s.bytes = 8
	}
	h := &s.rec.Header
	if !s.ahead || s.rec.Kind != trace.KindHeader {
		return
	}
	if s.bytes = 8; h.PointerSize == 4 {
		s.bytes = 4
	}
	s.clock, s.ahead = h.Clock, false
	s.start, s.last, s.days = 0, 0, 0
}

func (s *recordSource) name() string { return s.path }

func (s *recordSource) words() int { return s.bytes }

// next returns the next event. A second header begins another stream.
func (s *recordSource) next(e *wire.Event, p *mptrace.Printer) (int64, error) {
	for len(s.events) == 0 {
		if err := s.peek(); err != nil {
			return 0, err
		}
		r := &s.rec
		switch {
		case r.Kind == trace.KindHeader, s.ended && r.Kind == trace.KindProcess:
			return 0, io.EOF
		case r.Kind == trace.KindEnd:
			s.ended = true
			s.index.Reset()
		case r.Kind == trace.KindLost:
			s.lost += r.Lost.Events()
		case r.Kind == trace.KindExit && !r.Exit.Process:
			if err := p.ThreadEnd(uint64(max(r.TID, 0))); err != nil {
				return 0, err
			}
		}
		s.time(r.Time)
		s.events, s.ahead = s.index.Events(r), false
		if s.ended && len(s.events) > 0 {
			return 0, io.EOF
		}
	}
	*e = s.events[0]
	s.events = s.events[1:]
	return s.last, nil
}

// time notes the time of a record, which is 0 if it has none.
func (s *recordSource) time(t int64) {
	const day = 24 * 3600e9
	if t == 0 {
		return
	}
	t += s.days * day
	if s.start == 0 {
		s.start = t
	}
	if s.clock == trace.ClockDay && t-s.start < s.last-day/2 {
		s.days++
		t += day
	}
	s.last = t - s.start
}

func (s *recordSource) nextStream() (bool, error) {
	if len(s.events) > 0 { // events after an End
		s.ended = false
		return true, nil
	}
	switch err := s.peek(); {
	case err == nil:
		s.ended = false
		s.index.Reset()
		s.begin()
		return true, nil
	case err != io.EOF:
		return false, err
	}
	return false, nil
}

func (s *recordSource) verdict(warn func(format string, args ...any)) error {
	stats := s.index.Stats()
	for _, w := range []struct {
		count uint64
		text  string
	}{
		{stats.Unmatched, "frees of blocks that are not allocated are left out"},
		{stats.Adopted, "reallocs of blocks that are not allocated are shown as allocations"},
		{stats.Replaced, "blocks whose addresses are allocated again are shown as freed"},
		{stats.Foreign, "calls of other resources than memory are left out"},
		{s.lost, "events were lost while recording"},
	} {
		if w.count > 0 {
			warn("%s: %d", w.text, w.count)
		}
	}
	return skipped(s.path, s.t.Stats().Skipped)
}

func (s *recordSource) close() error { return s.stop() }
