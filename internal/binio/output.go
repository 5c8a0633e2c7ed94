package binio

import (
	"errors"
	"fmt"
	"io"
)

// flushAt is the number of bytes in the buffer of an Output at which Pass writes them.
const flushAt = 64 << 10

// Output is the buffered output of an encoder. The encoder appends whole records to Buf
// and calls Pass after each, so that every Write on the underlying writer ends after a
// whole record. After an error Output writes nothing more and returns that error again.
type Output struct {
	Buf []byte // appended and not yet written

	w      io.Writer
	format string
	err    error // sticky
	closed bool
}

// NewOutput returns an Output to w. Errors name the format. A record may take room bytes
// without making the buffer grow.
func NewOutput(w io.Writer, format string, room int) Output {
	return Output{Buf: make([]byte, 0, flushAt+room), w: w, format: format}
}

// Err returns the error of an earlier write, or after Close that the writer is closed.
func (o *Output) Err() error { return o.err }

// Pass writes the buffer if it is large.
func (o *Output) Pass() error {
	if len(o.Buf) < flushAt {
		return o.err
	}
	return o.Flush()
}

// Flush writes the buffer.
func (o *Output) Flush() error {
	if o.err != nil || len(o.Buf) == 0 {
		return o.err
	}
	err := Write(o.w, o.Buf)
	o.Buf = o.Buf[:0]
	if err != nil {
		o.err = fmt.Errorf("writing %s: %w", o.format, err)
	}
	return o.err
}

// Close flushes. After that Err, Pass and Flush return an error; closing again does
// nothing.
func (o *Output) Close() error {
	if o.closed {
		return nil
	}
	if err := o.Flush(); err != nil {
		return err
	}
	o.closed, o.err = true, errors.New(o.format+": writer is closed")
	return nil
}
