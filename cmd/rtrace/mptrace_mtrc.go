package main

import (
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/decoder"
	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/mptrace"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// mtrcSource is a trace of mpatrol.
type mtrcSource struct {
	path    string
	in      *decoder.Input
	stop    func() error
	scanner *mtrc.Scanner
	cut     int // streams that other streams cut
}

func newMtrcSource(name string, in *decoder.Input, stop func() error) (mptraceSource, error) {
	s := &mtrcSource{path: name, in: in, stop: stop}
	var err error
	if s.scanner, err = mtrc.NewScanner(in, mtrc.Options{}); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", name, s.explain(err)), in.Close())
	}
	return s, nil
}

// explain replaces the error at the end of the input with that of its compression, if there
// is one.
func (s *mtrcSource) explain(err error) error {
	if cause := s.in.Err(); cause != nil {
		return cause
	}
	return err
}

func (s *mtrcSource) name() string { return s.path }

func (s *mtrcSource) words() int { return s.scanner.Header().Words }

func (s *mtrcSource) next(e *wire.Event, _ *mptrace.Printer) (int64, error) {
	err := s.scanner.Next(e)
	if err != nil && err != io.EOF {
		err = s.explain(err)
	}
	return 0, err
}

func (s *mtrcSource) nextStream() (bool, error) {
	if !s.scanner.Whole() {
		s.cut++
	}
	more, err := s.scanner.NextStream()
	if err != nil {
		err = s.explain(err)
	}
	return more, err
}

func (s *mtrcSource) verdict(warn func(format string, args ...any)) error {
	stats := s.scanner.Stats()
	for _, w := range []struct {
		count uint64
		text  string
	}{
		{stats.Undefined, "names that were not defined are left out"},
		{stats.ZeroIDs + stats.HighIDs, "names with ids at which the real mptrace crashes"},
		{stats.LongNames, "names that are too long for the real mptrace"},
		{uint64(stats.Junk), "bytes after the end of the trace are left out"},
	} {
		if w.count > 0 {
			warn("%s: %d", w.text, w.count)
		}
	}
	if s.cut > 0 {
		return cli.Incompletef("%s: streams that have no end: %d", s.path, s.cut)
	}
	return s.in.Err()
}

func (s *mtrcSource) close() error { return errors.Join(s.in.Close(), s.stop()) }
