package sptext

import (
	"bytes"
	"io"

	wire "rtrace-bpf/internal/wire/sptext"
)

// nextLine returns the next line without its end. It is valid until the next
// call. The last line may lack its end. After repeat the same line comes again.
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
	seen := 0 // bytes behind at that hold no line end
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
			// Keep the start of the line and drop what follows.
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

// piece takes n bytes off a line that is longer.
func (d *Reader) piece(n int) []byte {
	d.line = d.buf[d.at : d.at+n]
	d.at += n
	d.cut, d.bare = true, true
	return d.trim()
}

// trim drops what is not part of a line's text: the second byte of a line end
// of two, and in legacy mode what follows a zero byte.
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

// fill reads more input behind what is there, moving that to the front. It
// returns the error of the input once nothing more comes.
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

// warn passes on a warning of the original parser.
func (d *Reader) warn(text string) {
	if d.opts.Warn != nil && d.opts.Legacy {
		d.opts.Warn(text)
	}
}
