package main

import (
	"errors"
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
		return nil, errors.Join(cut(name, s.explain(err)), in.Close())
	}
	return s, nil
}

// explain replaces the error of the end of the input by what its compression
// says about it.
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
	if stats.Undefined > 0 {
		warn("names that were not defined are left out: %d", stats.Undefined)
	}
	if stats.Junk > 0 {
		warn("bytes behind the end of the trace are left out: %d", stats.Junk)
	}
	if s.cut > 0 {
		return cli.Incompletef("%s: streams that have no end: %d", s.path, s.cut)
	}
	return s.in.Err()
}

func (s *mtrcSource) close() error { return errors.Join(s.in.Close(), s.stop()) }
