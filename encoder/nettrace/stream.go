package nettrace

import (
	"errors"
	"fmt"
	"io"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// passAt is the number of buffered bytes at which they are written.
const passAt = 64 << 10

var errClosed = errors.New("nettrace: writer is closed")

// stream is the output: blocks in the layout of a version.
type stream struct {
	w       io.Writer
	layout  layout
	out     []byte // whole blocks, not yet written
	written uint64 // bytes of the stream before out
	err     error  // sticky
	cut     bool   // a write failed after a part of out
}

// block appends a block.
func (s *stream) block(kind wire.BlockKind, head, body []byte) {
	s.out = s.layout.block(s.out, s.written, kind, head, body)
}

// pass writes the buffer.
func (s *stream) pass() error {
	if len(s.out) == 0 {
		return nil
	}
	n, err := s.w.Write(s.out)
	if err == nil && n < len(s.out) {
		err = io.ErrShortWrite
	}
	if err != nil {
		s.cut = n > 0 || s.written == 0
		s.err = fmt.Errorf("writing nettrace: %w", err)
	}
	s.written += uint64(len(s.out))
	s.out = s.out[:0]
	return s.err
}

// end writes the buffer and the end of the stream.
func (s *stream) end() error {
	s.out = s.layout.end(s.out)
	err := s.pass()
	if err == nil {
		s.err = errClosed
	}
	return err
}

// stop ends the stream after an error, if it was not cut within a block. Without an end
// readers report that it is cut.
func (s *stream) stop() {
	if !s.cut {
		s.cut = true
		_, _ = s.w.Write(s.layout.end(nil))
	}
}
