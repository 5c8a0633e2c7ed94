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

// File is a spool. It is not safe for concurrent use. Close it after use.
type File struct {
	f       *os.File
	dir     string
	size    int64 // bytes in whole blocks
	encoder *encoder
	unsaved []byte // block whose write failed
	err     error  // sticky
	failed  error  // error of that write
	closed  bool
	source  *source // nil until Reader is called
}

var _ trace.Writer = (*File)(nil)

var (
	errRead   = errors.New("spool: written while it is read")
	errClosed = errors.New("spool: used after Close")
)

// Create creates a spool in the folder dir. Only its owner can read it, and it
// has no name, except on systems that cannot delete open files.
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

// openNamed creates a file with a name and deletes the name.
func openNamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".rtrace-spool-*")
	if err == nil {
		_ = os.Remove(f.Name()) // Close tries again
	}
	return f, err
}

// cause returns an error without the name of the file, which is meaningless to
// users.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// WriteRecord implements trace.Writer. It accepts every kind of record. A
// record whose write to the disk fails is still in the spool.
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

// Flush writes buffered records to the file. It is not needed before Reader,
// which also reads buffered records.
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

// Size returns the size of the file in bytes.
func (s *File) Size() int64 { return s.size }

// Reader ends the writing and returns a reader of all records. If a write
// failed, the reader returns its error after the last record. There can be only
// one reader, because the parts of the file that it has read are released if
// the file system supports it.
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

// ErrYielded is the error of a Reader at the place where records were discarded
// by Yield.
var ErrYielded = errors.New("records were discarded to free disk space")

// Yield discards the last n bytes that the Reader has not read yet, or all of
// them if there are fewer, and the buffered records, to make room on the disk
// for output made from the rest. It reports whether there was anything to
// discard. The Reader then ends with ErrYielded.
func (s *File) Yield(n int64) bool { return s.source != nil && s.source.yield(n) }

// Close removes the file with all its records.
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
