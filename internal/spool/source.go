package spool

import (
	"io"
	"os"
)

// source is what a Reader reads: a file, and what is in memory behind it. It
// gives back what it has read, so that what is made of a spool can take its
// place on a disk that is full.
type source struct {
	f       *os.File // may be nil
	at      int64    // next byte of f to read
	size    int64    // of f
	freed   int64    // bytes given back
	rest    []byte
	yielded bool // something was given up
}

// pageBytes is the unit in which a file's memory is given back; a larger one
// of the file system keeps a little longer.
const pageBytes = 4096

// left returns how many bytes are still to be read.
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
		err = nil // it shows again
	}
	return n, err
}

// yield gives up what is in memory, and n bytes before that or as many as there
// are. It says whether these were any.
func (s *source) yield(n int64) bool {
	size := max(s.at, s.size-n)
	if s.f == nil || size >= s.size {
		return false
	}
	s.yielded, s.size, s.rest = true, size, nil
	return s.f.Truncate(size) == nil
}
