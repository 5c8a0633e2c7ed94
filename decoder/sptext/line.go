package sptext

import (
	"bytes"
	"io"

	wire "rtrace-bpf/internal/wire/sptext"
)

// nextLine returns the next line without its line end. It is valid until the next call.
// The last line may lack its line end. After repeat it returns the same line again.
func (d *Reader) nextLine() ([]byte, error) {
	if d.again {
		d.again = false
		return d.line, nil
	}
	d.cut, d.bare = false, false
	d.lineAt = d.offset + int64(d.at)
	limit := maxLine
	if d.opts.Legacy {
		limit = wire.LegacyLine
	}
	seen := 0 // bytes from at on without a line end
	for {
		if i := bytes.IndexByte(d.buf[d.at+seen:d.end], '\n'); i >= 0 {
			n := seen + i
			if d.opts.Legacy && n >= limit {
				return d.piece(limit), nil
			}
			d.line = d.buf[d.at : d.at+min(n, limit)]
			d.at += n + 1
			return d.trim(), nil
		}
		seen = d.end - d.at
		if d.opts.Legacy && seen >= limit {
			return d.piece(limit), nil
		}
		if seen > limit {
			// Keep the start of the line and drop the rest.
			copy(d.buf, d.buf[d.at:d.at+limit])
			d.offset += int64(d.end - limit)
			d.at, d.end = 0, limit
			seen = limit
		}
		if err := d.fill(); err != nil {
			if d.at == d.end {
				return nil, err
			}
			d.line = d.buf[d.at:d.end]
			d.at = d.end
			d.bare = true
			return d.trim(), nil
		}
	}
}

// piece returns the first n bytes of a longer line.
func (d *Reader) piece(n int) []byte {
	d.line = d.buf[d.at : d.at+n]
	d.at += n
	d.cut, d.bare = true, true
	return d.trim()
}

// trim removes what is not part of a line's text: the first byte of a line end of two
// bytes, and in legacy mode everything from a zero byte on.
func (d *Reader) trim() []byte {
	if d.opts.Legacy {
		if i := bytes.IndexByte(d.line, 0); i >= 0 {
			d.line = d.line[:i]
		}
		return d.line
	}
	if n := len(d.line); n > 0 && d.line[n-1] == '\r' {
		d.line = d.line[:n-1]
	}
	return d.line
}

// repeat makes nextLine return the current line once more.
func (d *Reader) repeat() { d.again = true }

// fill moves the unused bytes to the start of the buffer and reads more input. It
// returns the error of the input when there is no more.
func (d *Reader) fill() error {
	if d.ioErr != nil {
		return d.ioErr
	}
	if d.at > 0 {
		copy(d.buf, d.buf[d.at:d.end])
		d.offset += int64(d.at)
		d.end -= d.at
		d.at = 0
	}
	if d.end == len(d.buf) {
		grown := make([]byte, max(bufferSize, 2*len(d.buf)))
		copy(grown, d.buf[:d.end])
		d.buf = grown
	}
	for range 100 {
		n, err := d.r.Read(d.buf[d.end:])
		d.end += n
		if err != nil {
			d.ioErr = err
		}
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	d.ioErr = io.ErrNoProgress
	return d.ioErr
}

// warn reports a warning of the original parser.
func (d *Reader) warn(text string) {
	if d.opts.Warn != nil && d.opts.Legacy {
		d.opts.Warn(text)
	}
}
