package mptrace

import (
	_ "embed"
	"strings"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// program is the C program of a simulation. Its calls and the number of its
// slots replace the line PLACE.
//
//go:embed simulation.c.txt
var program string

// Simulation writes a C program that repeats the allocations of a stream, in
// their order and in one thread. It keeps blocks in slots, as many as there
// were live blocks at the same time.
type Simulation struct {
	slots  *blocks // by index; a block's size is the slot
	unused []uint64
	count  uint64 // number of slots
}

// NewSimulation returns a Simulation of a new stream.
func NewSimulation() *Simulation { return &Simulation{slots: newBlocks()} }

// AppendBegin appends the text before the calls.
func (s *Simulation) AppendBegin(dst []byte) []byte {
	front, _, _ := strings.Cut(program, "\tPLACE\n")
	return append(dst, front...)
}

// AppendEvent appends the call of an event that counts.
func (s *Simulation) AppendEvent(dst []byte, n *Entry) []byte {
	switch n.Kind {
	case wire.Alloc:
		if n.Problem == Twice {
			dst = s.appendFree(dst, n.Index)
		}
		slot := s.count
		if last := len(s.unused) - 1; last >= 0 {
			slot, s.unused = s.unused[last], s.unused[:last]
		} else {
			s.count++
		}
		s.slots.put(block{index: n.Index, size: slot, born: 1})
		return appendCall(dst, "\tA(", slot, n.Size)
	case wire.Realloc:
		b := s.slots.take(n.Index)
		if b.born == 0 {
			return dst
		}
		s.slots.put(b)
		return appendCall(dst, "\tR(", b.size, n.Size)
	case wire.Free:
		return s.appendFree(dst, n.Index)
	}
	return dst
}

func (s *Simulation) appendFree(dst []byte, index uint64) []byte {
	b := s.slots.take(index)
	if b.born == 0 {
		return dst
	}
	s.unused = append(s.unused, b.size)
	dst = appendDecimal(append(dst, "\tF("...), b.size, 0)
	return append(dst, ")\n"...)
}

func appendCall(dst []byte, what string, slot, size uint64) []byte {
	dst = appendDecimal(append(dst, what...), slot, 0)
	dst = appendDecimal(append(dst, ", "...), size, 0)
	return append(dst, ")\n"...)
}

// AppendEnd appends the text after the calls.
func (s *Simulation) AppendEnd(dst []byte) []byte {
	_, back, _ := strings.Cut(program, "\tPLACE\n")
	dst = append(dst, "\t{ 0, 0, 0 }\n};\n\n#define SLOTS "...)
	dst = appendDecimal(dst, s.count, 0)
	return append(append(dst, '\n'), back...)
}
