package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"rtrace-bpf/trace"
)

// File is a spool. One goroutine may use it at a time. Close gives it up.
type File struct {
	f       *os.File
	dir     string
	size    int64 // bytes in whole blocks
	encoder *encoder
	unsaved []byte // the block whose write failed
	err     error  // sticky
	failed  error  // of the write
	closed  bool
	source  *source // nil while it is written
}

var _ trace.Writer = (*File)(nil)

var (
	errRead   = errors.New("spool: it is being read")
	errClosed = errors.New("spool: it was given up")
)

// Create makes a spool on the disk of the folder dir. Only its owner can read
// it, and it has no name, but on systems that cannot delete a file in use.
func Create(dir string) (*File, error) {
	f, err := openUnnamed(dir)
	if err != nil {
		f, err = openNamed(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create temporary file in %s: %w", dir, cause(err))
	}
	return &File{f: f, dir: dir, encoder: newEncoder(tableBytes)}, nil
}

// openNamed makes a file with a name and deletes that.
func openNamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".rtrace-spool-*")
	if err == nil {
		_ = os.Remove(f.Name()) // Close tries again
	}
	return f, err
}

// cause is what went wrong without the name of the file, which means nothing
// to anybody.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// WriteRecord implements trace.Writer. It has a place for every kind. A record
// whose write to the disk fails is in the spool all the same.
func (s *File) WriteRecord(r *trace.Record) error {
	if s.err != nil {
		return s.err
	}
	if err := s.encoder.record(r); err != nil {
		return err
	}
	if s.encoder.full() {
		return s.write()
	}
	return nil
}

// Flush writes what was gathered to the file. Nothing needs it but the
// interface: what is in memory is read from there.
func (s *File) Flush() error {
	if s.err != nil || s.encoder.empty() {
		return s.err
	}
	return s.write()
}

func (s *File) write() error {
	block := s.encoder.take()
	if _, err := s.f.Write(block); err != nil {
		s.failed = fmt.Errorf("write temporary file in %s: %w", s.dir, cause(err))
		s.err, s.unsaved = s.failed, block
		return s.err
	}
	s.size += int64(len(block))
	return nil
}

// Size returns how many bytes the file has.
func (s *File) Size() int64 { return s.size }

// Reader ends the writing and returns a reader of all records. If a write has
// failed, its error is what the reader ends with. What was read goes back to
// the file system where that can be, so there is one reader of a file.
func (s *File) Reader() (*Reader, error) {
	if errors.Is(s.err, errRead) || errors.Is(s.err, errClosed) {
		return nil, s.err
	}
	rest := s.unsaved
	if s.failed == nil && !s.encoder.empty() {
		rest = s.encoder.take()
	}
	s.err = errRead
	s.source = &source{f: s.f, size: s.size, rest: rest}
	r := newReader(s.source)
	r.end = cmp.Or(s.failed, io.EOF)
	return r, nil
}

// ErrYielded is how a Reader ends before records that were given up.
var ErrYielded = errors.New("records were given up for room on the disk")

// Yield gives up the last n bytes of what the Reader has not read yet, or all
// of it, so that there is room on the disk for what is made of the rest. It says
// whether there was anything. The Reader then ends with ErrYielded.
func (s *File) Yield(n int64) bool { return s.source != nil && s.source.yield(n) }

// Close gives the file up with all that is in it.
func (s *File) Close() error {
	if s.closed {
		return nil
	}
	s.closed, s.err = true, errClosed
	err := s.f.Close()
	if named(s.f) {
		// Gone already, except where a file in use cannot be deleted.
		if e := os.Remove(s.f.Name()); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return fmt.Errorf("close temporary file in %s: %w", s.dir, cause(err))
	}
	return nil
}
