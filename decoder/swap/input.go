package swap

import "io"

// bufferSize is what a scanner starts with. A message that is larger makes the
// buffer grow, at most to twice of what was really read.
const bufferSize = 64 << 10

// maxEmptyReads is how often in a row a Read may return nothing at all.
const maxEmptyReads = 100

// input is a window on the input that slides forward.
type input struct {
	r        io.Reader
	buf      []byte
	pos, end int   // unread part of buf
	base     int64 // offset of buf[0] in the input
	err      error // why reading stopped; io.EOF at the end
}

// window returns the unread bytes at hand.
func (in *input) window() []byte { return in.buf[in.pos:in.end] }

// have makes n unread bytes available and reports whether it could. It reads no
// further than it must: the input may be a pipe of a program that still runs.
func (in *input) have(n int) bool {
	for in.end-in.pos < n {
		if !in.more() {
			return false
		}
	}
	return true
}

// more makes at least one more byte available and reports whether it could.
func (in *input) more() bool {
	if in.err != nil {
		return false
	}
	if in.pos > 0 {
		in.base += int64(in.pos)
		in.end = copy(in.buf, in.buf[in.pos:in.end])
		in.pos = 0
	}
	if in.end == len(in.buf) {
		grown := make([]byte, 2*len(in.buf))
		copy(grown, in.buf)
		in.buf = grown
	}
	for range maxEmptyReads {
		n, err := in.r.Read(in.buf[in.end:])
		in.end += n
		in.err = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	in.err = io.ErrNoProgress
	return false
}
