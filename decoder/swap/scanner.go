package swap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/internal/window"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Message is a message as it is in the file.
type Message struct {
	ID       uint32
	Sequence uint32
	// Seconds and Nanos are the time in its header. Formula reports the order of the
	// two in the file: nanoseconds first, as in the formula of the newer text.
	Seconds, Nanos uint32
	Formula        bool
	Data           []byte // payload, valid until the next call of Next
	Offset         int64  // of its header, in bytes from the start of the file
}

// Nanoseconds returns the time of the header in nanoseconds since 1970.
func (m *Message) Nanoseconds() int64 { return int64(m.Seconds)*1e9 + int64(m.Nanos) }

// Scanner splits a file into messages.
type Scanner struct {
	in      window.Window
	max     int
	formula bool
	size    int // size of the message that Next returned last
}

// NewScanner returns a scanner of r.
func NewScanner(r io.Reader, o Options) (*Scanner, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Scanner{in: window.New(r, window.Size), max: o.MaxMessage}, nil
}

// Offset returns the offset of the next message.
func (s *Scanner) Offset() int64 { return s.in.Offset() + int64(s.size) }

// Next reads a message. At the end it returns io.EOF. A break of the format is a
// *trace.SyntaxError; nothing after it can be read.
func (s *Scanner) Next(m *Message) error {
	s.in.Skip(s.size)
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

// renew makes m, which Next has returned, valid again after a peek.
func (s *Scanner) renew(m *Message) { m.Data = s.in.Bytes()[wire.HeaderSize:s.size:s.size] }

// peek reads the next message without consuming it. It returns false at the end.
func (s *Scanner) peek(m *Message) (bool, error) {
	in := &s.in
	b := in.Bytes()[s.size:]
	if len(b) < wire.HeaderSize {
		if !in.Have(s.size + 1) {
			return false, s.ended(0)
		}
		if !in.Have(s.size + wire.HeaderSize) {
			return false, s.ended(len(in.Bytes()) - s.size)
		}
		b = in.Bytes()[s.size:]
	}
	size := binary.LittleEndian.Uint32(b[16:])
	if size > uint32(s.max) {
		return false, syntaxError(s.Offset(), fmt.Errorf("message of %d bytes %w of %d", size, trace.ErrLimit, s.max))
	}
	total := wire.HeaderSize + int(size)
	if len(b) < total {
		if !in.Have(s.size + total) {
			return false, s.ended(len(in.Bytes()) - s.size)
		}
		b = in.Bytes()[s.size:]
	}
	m.ID = binary.LittleEndian.Uint32(b)
	m.Sequence = binary.LittleEndian.Uint32(b[4:])
	m.Offset = s.Offset()
	m.Data = b[wire.HeaderSize:total:total]
	first, second := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	// Nanoseconds are below 10^9, and seconds are above that since 2001.
	if a, b := first >= wire.MinSeconds, second >= wire.MinSeconds; a != b {
		s.formula = b
	}
	m.Seconds, m.Nanos, m.Formula = first, second, s.formula
	if s.formula {
		m.Seconds, m.Nanos = second, first
	}
	return true, nil
}

// ended returns why no message could be read although n of its bytes are there.
func (s *Scanner) ended(n int) error {
	switch {
	case !errors.Is(s.in.Err(), io.EOF):
		return s.in.Err()
	case n == 0:
		return nil
	}
	return syntaxError(s.Offset(), trace.ErrTruncated)
}
