package sptext

import (
	"bytes"
	"io"

	wire "rtrace-bpf/internal/wire/sptext"
)

// lines splits the input into lines.
type lines struct {
	r      io.Reader
	legacy bool

	buf    []byte // buf[at:end] is read and not used yet
	at     int
	end    int
	offset int64 // offset of buf[0] in the input
	err    error // error with which the input ended

	line   []byte
	lineAt int64 // offset of the line in the input
	again  bool  // the line is to be parsed again
	bare   bool  // the line has no line feed, for one of two reasons:
	cut    bool  // legacy: it continues in the next piece; else the input ends
}

// next returns the next line without its line end. It is valid until the next call.
// The last line may lack its line end. After repeat it returns the same line again.
func (l *lines) next() ([]byte, error) {
	if l.again {
		l.again = false
		return l.line, nil
	}
	l.cut, l.bare = false, false
	l.lineAt = l.offset + int64(l.at)
	limit := maxLine
	if l.legacy {
		limit = wire.LegacyLine
	}
	seen := 0 // bytes from at on without a line end
	for {
		if i := bytes.IndexByte(l.buf[l.at+seen:l.end], '\n'); i >= 0 {
			n := seen + i
			if l.legacy && n >= limit {
				return l.piece(limit), nil
			}
			l.line = l.buf[l.at : l.at+min(n, limit)]
			l.at += n + 1
			return l.trim(), nil
		}
		seen = l.end - l.at
		if l.legacy && seen >= limit {
			return l.piece(limit), nil
		}
		if seen > limit {
			// Keep the start of the line and drop the rest.
			copy(l.buf, l.buf[l.at:l.at+limit])
			l.offset += int64(l.end - limit)
			l.at, l.end = 0, limit
			seen = limit
		}
		if err := l.fill(); err != nil {
			if l.at == l.end {
				return nil, err
			}
			l.line = l.buf[l.at:l.end]
			l.at = l.end
			l.bare = true
			return l.trim(), nil
		}
	}
}

// piece returns the first n bytes of a longer line.
func (l *lines) piece(n int) []byte {
	l.line = l.buf[l.at : l.at+n]
	l.at += n
	l.cut, l.bare = true, true
	return l.trim()
}

// trim removes what is not part of a line's text: the first byte of a line end of two
// bytes, and in legacy mode everything from a zero byte on.
func (l *lines) trim() []byte {
	if l.legacy {
		if i := bytes.IndexByte(l.line, 0); i >= 0 {
			l.line = l.line[:i]
		}
		return l.line
	}
	if n := len(l.line); n > 0 && l.line[n-1] == '\r' {
		l.line = l.line[:n-1]
	}
	return l.line
}

// repeat makes next return the current line once more.
func (l *lines) repeat() { l.again = true }

// fill moves the unused bytes to the start of the buffer and reads more input. It
// returns the error of the input when there is no more.
func (l *lines) fill() error {
	if l.err != nil {
		return l.err
	}
	if l.at > 0 {
		copy(l.buf, l.buf[l.at:l.end])
		l.offset += int64(l.at)
		l.end -= l.at
		l.at = 0
	}
	if l.end == len(l.buf) {
		grown := make([]byte, max(bufferSize, 2*len(l.buf)))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		if err != nil {
			l.err = err
		}
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	l.err = io.ErrNoProgress
	return l.err
}
