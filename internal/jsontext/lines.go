package jsontext

import (
	"bytes"
	"errors"
	"io"
)

// ErrLong reports that a line is longer than the limit.
var ErrLong = errors.New("line is too long")

// Lines reads an input line by line.
type Lines struct {
	r      io.Reader
	limit  int
	buf    []byte // buf[next:] is read but not returned yet
	next   int
	offset int64 // offset of buf[0] in the input
	eof    bool
}

// NewLines returns the lines of r. A line of more than limit bytes is an error.
func NewLines(r io.Reader, limit int) *Lines {
	return &Lines{r: r, limit: limit, buf: make([]byte, 0, 64<<10)}
}

// Next returns the next line with its line break, and its offset. The last line
// may lack the line break. The line is valid until the next call. Errors of the
// reader, including io.EOF, are returned unchanged.
func (l *Lines) Next() (line []byte, offset int64, err error) {
	scanned := l.next
	for {
		end := len(l.buf)
		if i := bytes.IndexByte(l.buf[scanned:], '\n'); i >= 0 {
			end = scanned + i + 1
		} else if !l.eof {
			if end-l.next > l.limit {
				return nil, l.Offset(), ErrLong
			}
			scanned = end - l.slide()
			if err := l.fill(); err != nil {
				return nil, l.Offset(), err
			}
			continue
		} else if end == l.next {
			return nil, l.Offset(), io.EOF
		}
		line, offset = l.buf[l.next:end], l.Offset()
		l.next = end
		return line, offset, nil
	}
}

// Offset returns the offset of the line that Next returns next.
func (l *Lines) Offset() int64 { return l.offset + int64(l.next) }

// Ended reports whether Next has returned the last line.
func (l *Lines) Ended() bool { return l.eof && l.next == len(l.buf) }

// slide moves the unread bytes to the front and returns the distance.
func (l *Lines) slide() int {
	n := l.next
	if n > 0 {
		l.offset += int64(n)
		l.buf = l.buf[:copy(l.buf, l.buf[n:])]
		l.next = 0
	}
	return n
}

// fill reads once into the free part of buf, which it doubles if it is full.
func (l *Lines) fill() error {
	if len(l.buf) == cap(l.buf) {
		grown := make([]byte, len(l.buf), 2*cap(l.buf))
		copy(grown, l.buf)
		l.buf = grown
	}
	for range 100 {
		n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if errors.Is(err, io.EOF) {
			l.eof = true
			return nil
		}
		if err != nil {
			return err
		}
		if n > 0 {
			return nil
		}
	}
	return io.ErrNoProgress
}
