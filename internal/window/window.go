// Package window provides a view of an input that slides forward, for decoders
// of formats whose records do not begin with their length.
package window

import "io"

// Size is the initial size of a window, in bytes. It grows for larger records,
// at most to twice the number of bytes read.
const Size = 64 << 10

// maxEmptyReads is the number of consecutive Reads that may return no data.
const maxEmptyReads = 100

// Window is a view of an input. The slices that its methods return are valid
// until the next call of Have or More.
type Window struct {
	r        io.Reader
	buf      []byte
	pos, end int   // unread part of buf
	base     int64 // offset of buf[0] in the input
	err      error // why reading stopped
}

// New returns a window of size bytes at the beginning of r.
func New(r io.Reader, size int) Window { return Window{r: r, buf: make([]byte, size)} }

// Bytes returns the available unread bytes.
func (w *Window) Bytes() []byte { return w.buf[w.pos:w.end] }

// Offset returns the offset of the first unread byte in the input.
func (w *Window) Offset() int64 { return w.base + int64(w.pos) }

// Skip moves past n bytes, which must be available.
func (w *Window) Skip(n int) { w.pos += n }

// Last returns the last n bytes that were skipped since the last call of Have
// or More.
func (w *Window) Last(n int) []byte { return w.buf[w.pos-n : w.pos] }

// Err returns why reading stopped, io.EOF at the end, or nil if it has not.
func (w *Window) Err() error { return w.err }

// Have makes n unread bytes available and reports whether it succeeded. It
// reads no more than necessary, because the input may be a pipe from a running
// program.
func (w *Window) Have(n int) bool { return w.end-w.pos >= n || w.fill(n) }

func (w *Window) fill(n int) bool {
	for w.end-w.pos < n {
		if !w.More() {
			return false
		}
	}
	return true
}

// More makes at least one more byte available and reports whether it succeeded.
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
