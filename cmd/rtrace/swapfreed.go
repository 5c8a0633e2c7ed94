package main

import (
	"errors"
	"io"
	"os"

	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// twofold copies its records to a temporary file as it reads them. It delivers them again
// once it is known which calls allocated blocks that were not freed.
type twofold struct {
	src  trace.Reader
	file *spool.File
	err  error // the end of src

	again   *spool.Reader // nil until then
	leaks   leak.Leaks
	next    int    // of leaks
	ordinal uint64 // of the call that was read last, from 1
	leaked  bool   // its block was not freed
}

var _ trace.Reader = (*twofold)(nil)

// newTwofold returns a twofold that reads src. Call Close when done.
func newTwofold(src trace.Reader) (*twofold, error) {
	file, err := spool.Create(os.TempDir())
	if err != nil {
		return nil, err
	}
	return &twofold{src: src, file: file}, nil
}

// ReadRecord implements trace.Reader.
func (t *twofold) ReadRecord(r *trace.Record) error {
	if t.again != nil {
		return t.reread(r)
	}
	if t.err = t.src.ReadRecord(r); t.err != nil {
		return t.err
	}
	return t.file.WriteRecord(r)
}

// rewind returns to the beginning.
func (t *twofold) rewind(leaks leak.Leaks) (err error) {
	t.leaks = leaks
	t.again, err = t.file.Reader()
	return err
}

func (t *twofold) reread(r *trace.Record) error {
	err := t.again.ReadRecord(r)
	if errors.Is(err, io.EOF) {
		return t.err
	}
	if err != nil || r.Kind != trace.KindCall {
		return err
	}
	t.ordinal++
	if t.leaked = t.next < t.leaks.Len() && t.leaks.Ordinal(t.next) == t.ordinal; t.leaked {
		t.next++
	}
	return nil
}

// close closes the file.
func (t *twofold) close() error { return t.file.Close() }
