package spool

import (
	"io"
	"os"
)

// source is the input of a Reader: a file, followed by blocks in memory. It
// releases the parts of the file that were read, so that output made from a
// spool can take their place on a full disk.
type source struct {
	f       *os.File // may be nil
	at      int64    // next byte of f to read
	size    int64    // size of f
	freed   int64    // bytes released
	rest    []byte
	yielded bool // yield discarded something
}

// pageBytes is the unit in which parts of the file are released. A file system
// with larger units keeps slightly more.
const pageBytes = 4096

// left returns the number of bytes still to be read.
func (s *source) left() int64 { return s.size - s.at + int64(len(s.rest)) }

func (s *source) Read(p []byte) (int, error) {
	if s.at == s.size {
		if len(s.rest) == 0 {
			return 0, io.EOF
		}
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n, nil
	}
	p = p[:min(int64(len(p)), s.size-s.at)]
	n, err := s.f.ReadAt(p, s.at)
	s.at += int64(n)
	if whole := s.at &^ (pageBytes - 1); whole-s.freed >= blockBytes/2 {
		release(s.f, s.freed, whole-s.freed)
		s.freed = whole
	}
	if n > 0 {
		err = nil // the next call returns it
	}
	return n, err
}

// yield discards the blocks in memory, and n bytes of the file before them or
// as many as there are. It reports whether the file had any.
func (s *source) yield(n int64) bool {
	size := max(s.at, s.size-n)
	if s.f == nil || size >= s.size {
		return false
	}
	s.yielded, s.size, s.rest = true, size, nil
	return s.f.Truncate(size) == nil
}
