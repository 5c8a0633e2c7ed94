// Package window has a view of an input that slides forward, for decoders of formats
// whose records tell their length as they go.
package window

import "io"

// Size is what a window starts with, in bytes. A record that is larger makes it grow,
// at most to twice of what was really read.
const Size = 64 << 10

// maxEmptyReads is how often in a row a Read may return nothing at all.
const maxEmptyReads = 100

// Window is a view of an input. What its methods return of it is valid until the next
// call of Have or More.
type Window struct {
	r        io.Reader
	buf      []byte
	pos, end int   // unread part of buf
	base     int64 // offset of buf[0] in the input
	err      error // why reading stopped
}

// New returns a window of size bytes at the beginning of r.
func New(r io.Reader, size int) Window { return Window{r: r, buf: make([]byte, size)} }

// Bytes returns the unread bytes at hand.
func (w *Window) Bytes() []byte { return w.buf[w.pos:w.end] }

// Offset returns how far the input was stepped over, in bytes.
func (w *Window) Offset() int64 { return w.base + int64(w.pos) }

// Skip steps over n bytes, which are at hand.
func (w *Window) Skip(n int) { w.pos += n }

// Last returns the last n bytes that were stepped over since Have or More was called.
func (w *Window) Last(n int) []byte { return w.buf[w.pos-n : w.pos] }

// Err returns why reading stopped, io.EOF at the end, or nil if it has not.
func (w *Window) Err() error { return w.err }

// Have makes n unread bytes available and reports whether it could. It reads no
// further than it must: the input may be a pipe of a program that still runs.
func (w *Window) Have(n int) bool { return w.end-w.pos >= n || w.fill(n) }

func (w *Window) fill(n int) bool {
	for w.end-w.pos < n {
		if !w.More() {
			return false
		}
	}
	return true
}

// More makes at least one more byte available and reports whether it could.
func (w *Window) More() bool {
	if w.err != nil {
		return false
	}
	if w.pos > 0 {
		w.base += int64(w.pos)
		w.end = copy(w.buf, w.buf[w.pos:w.end])
		w.pos = 0
	}
	if w.end == len(w.buf) {
		grown := make([]byte, 2*len(w.buf))
		copy(grown, w.buf)
		w.buf = grown
	}
	for range maxEmptyReads {
		n, err := w.r.Read(w.buf[w.end:])
		w.end += n
		w.err = err
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	w.err = io.ErrNoProgress
	return false
}
