package sprtrace

import "io"

// bufferSize is what the reader starts with. A packet that is larger makes the
// buffer grow, at most to twice of what was really read.
const bufferSize = 64 << 10

// maxEmptyReads is how often in a row a Read may return nothing at all.
const maxEmptyReads = 100

// source is a window on the input that slides forward.
type source struct {
	r        io.Reader
	buf      []byte
	pos, end int   // unread part of buf
	base     int64 // offset of buf[0] in the input
	err      error // why reading stopped; io.EOF at the end
}

func newSource(r io.Reader) source {
	return source{r: r, buf: make([]byte, bufferSize)}
}

// offset returns how far the input was consumed.
func (s *source) offset() int64 { return s.base + int64(s.pos) }

// window returns the unread bytes at hand, valid until the next call of need.
func (s *source) window() []byte { return s.buf[s.pos:s.end] }

// need makes at least n bytes available and reports whether it could.
func (s *source) need(n int) bool {
	return s.end-s.pos >= n || s.fill(n)
}

func (s *source) fill(n int) bool {
	if s.err != nil {
		return false
	}
	s.base += int64(s.pos)
	s.end = copy(s.buf, s.buf[s.pos:s.end])
	s.pos = 0
	for empty := 0; s.end < n; {
		if s.end == len(s.buf) {
			grown := make([]byte, 2*len(s.buf))
			copy(grown, s.buf)
			s.buf = grown
		}
		m, err := s.r.Read(s.buf[s.end:])
		s.end += m
		if err != nil {
			s.err = err
			return s.end >= n
		}
		if m > 0 {
			empty = 0
		} else if empty++; empty == maxEmptyReads {
			s.err = io.ErrNoProgress
			return false
		}
	}
	return true
}
