package swap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Message is a message as it lies in the file.
type Message struct {
	ID       uint32
	Sequence uint32
	// Seconds and Nanos are the time of its header. Formula says in which
	// order they lie: nanoseconds first, as the newer text's formula has it.
	Seconds, Nanos uint32
	Formula        bool
	Data           []byte // payload, valid until the next call of Next
	Offset         int64  // of its header
}

// Nanoseconds returns the time of the header in nanoseconds since 1970.
func (m *Message) Nanoseconds() int64 { return int64(m.Seconds)*1e9 + int64(m.Nanos) }

// Scanner splits a file into messages.
type Scanner struct {
	in      input
	max     int
	formula bool
	size    int // of the message that Next has returned
}

// NewScanner returns a scanner of r.
func NewScanner(r io.Reader, o Options) (*Scanner, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Scanner{in: input{r: r, buf: make([]byte, bufferSize)}, max: o.MaxMessage}, nil
}

// Offset returns where the next message begins.
func (s *Scanner) Offset() int64 { return s.in.base + int64(s.in.pos+s.size) }

// Next reads a message. The end is io.EOF; what breaks the format is a
// *trace.SyntaxError, behind which nothing can be read.
func (s *Scanner) Next(m *Message) error {
	s.in.pos += s.size
	s.size = 0
	ok, err := s.peek(m)
	if err != nil {
		return err
	}
	if !ok {
		return io.EOF
	}
	s.size = wire.HeaderSize + len(m.Data)
	return nil
}

// peek looks at the next message without stepping over it. It returns false at the
// end.
func (s *Scanner) peek(m *Message) (bool, error) {
	in := &s.in
	at := in.pos + s.size
	if in.end-at < wire.HeaderSize {
		if !in.have(s.size + 1) {
			return false, s.ended(0)
		}
		if !in.have(s.size + wire.HeaderSize) {
			return false, s.ended(in.end - in.pos - s.size)
		}
		at = in.pos + s.size
	}
	head := in.buf[at : at+wire.HeaderSize]
	size := binary.LittleEndian.Uint32(head[16:])
	if size > uint32(s.max) {
		return false, syntaxError(in.base+int64(at), fmt.Errorf("message of %d bytes %w of %d", size, trace.ErrLimit, s.max))
	}
	total := wire.HeaderSize + int(size)
	if in.end-at < total {
		if !in.have(s.size + total) {
			return false, s.ended(in.end - in.pos - s.size)
		}
		at = in.pos + s.size
		head = in.buf[at : at+wire.HeaderSize]
	}
	m.ID = binary.LittleEndian.Uint32(head)
	m.Sequence = binary.LittleEndian.Uint32(head[4:])
	m.Offset = in.base + int64(at)
	m.Data = in.buf[at+wire.HeaderSize : at+total : at+total]
	first, second := binary.LittleEndian.Uint32(head[8:]), binary.LittleEndian.Uint32(head[12:])
	// Nanoseconds are below 10^9 and seconds were not since 2001.
	if a, b := first >= wire.MinSeconds, second >= wire.MinSeconds; a != b {
		s.formula = b
	}
	m.Seconds, m.Nanos, m.Formula = first, second, s.formula
	if s.formula {
		m.Seconds, m.Nanos = second, first
	}
	return true, nil
}

// ended says why no message could be read although n bytes of one are there.
func (s *Scanner) ended(n int) error {
	switch {
	case !errors.Is(s.in.err, io.EOF):
		return s.in.err
	case n == 0:
		return nil
	}
	return syntaxError(s.Offset(), trace.ErrTruncated)
}
