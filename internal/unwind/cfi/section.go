package cfi

import (
	"encoding/binary"
	"fmt"

	"rtrace-bpf/trace"
)

// maxBroken is how many entries of a section may be broken before the rest of
// it is given up.
const maxBroken = 1 << 12

// Section is the contents of .eh_frame or .debug_frame.
type Section struct {
	Machine Machine
	Data    []byte // stays the caller's; everything that is read points into it
	Addr    uint64 // where it is loaded, as linked; 0 for .debug_frame
	EH      bool   // .eh_frame, else .debug_frame
	Order   binary.ByteOrder

	// What addresses of the encodings textrel and datarel count from: the
	// start of .text and of .got.
	TextBase, DataBase uint64
}

// FDE is a frame description entry: what a section says of a range of code.
type FDE struct {
	CIE          *CIE
	Start, End   uint64 // addresses [Start, End); equal if it covers nothing
	Instructions []byte // part of the section
	Offset       int    // where the entry begins in the section

	at int // where the instructions begin in the section
}

// FDEs calls yield for each FDE in the order of the section. The FDE is
// borrowed until yield returns; a copy may be kept.
//
// An entry that is broken gives a *trace.SyntaxError and the next one follows,
// unless its length makes no sense or too many are broken: that error is the
// last thing yielded. Entries of length zero end the contribution of one
// linker input and are passed over.
func (s *Section) FDEs(yield func(*FDE, error) bool) {
	r := NewReader(s)
	var fde FDE
	for at, broken := 0, 0; at < len(s.Data); {
		e, err := r.entry(at)
		if err != nil {
			yield(nil, err)
			return
		}
		at = e.end
		if e.kind != isFDE {
			continue
		}
		if err := r.fde(&e, &fde); err != nil {
			if broken++; broken > maxBroken {
				yield(nil, s.fail(e.start, fmt.Errorf("broken entries: %w", trace.ErrLimit)))
				return
			}
			if !yield(nil, err) {
				return
			}
			continue
		}
		if !yield(&fde, nil) {
			return
		}
	}
}

// big says whether the byte order is big-endian.
func (s *Section) big() bool { return s.Order == binary.ByteOrder(binary.BigEndian) }

// fail returns a *trace.SyntaxError for a place of the section.
func (s *Section) fail(at int, err error) error {
	format := "debug_frame"
	if s.EH {
		format = "eh_frame"
	}
	return &trace.SyntaxError{Format: format, Offset: int64(at), Err: err}
}
