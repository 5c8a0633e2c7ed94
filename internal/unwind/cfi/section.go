package cfi

import (
	"encoding/binary"
	"fmt"

	"rtrace-bpf/trace"
)

// maxBroken is how many entries of a section may be broken before the rest of it is skipped.
const maxBroken = 1 << 12

// Section is the contents of .eh_frame or .debug_frame.
type Section struct {
	Machine Machine
	Data    []byte // owned by the caller; everything that is read points into it
	Addr    uint64 // where it is loaded, as linked; 0 for .debug_frame
	EH      bool   // .eh_frame, else .debug_frame
	Order   binary.ByteOrder

	// The bases of addresses in the encodings textrel and datarel: the starts of .text and of
	// .got.
	TextBase, DataBase uint64
}

// FDE is a frame description entry: the description of a range of code.
type FDE struct {
	CIE          *CIE
	Start, End   uint64 // addresses [Start, End); equal if the FDE covers nothing
	Instructions []byte // part of the section
	Offset       int    // offset of the entry in the section

	at int // offset of the instructions in the section
}

// FDEs calls yield for each FDE in the order of the section. The FDE is valid until yield
// returns; a copy may be kept.
//
// For a broken entry, FDEs yields a *trace.SyntaxError and continues with the next one. If the
// entry's length makes no sense or too many entries are broken, the error is the last thing
// yielded. Entries of length zero, which end the contribution of one linker input, are skipped.
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

// big reports whether the byte order is big-endian.
func (s *Section) big() bool { return s.Order == binary.ByteOrder(binary.BigEndian) }

// fail returns a *trace.SyntaxError for a place of the section.
func (s *Section) fail(at int, err error) error {
	format := "debug_frame"
	if s.EH {
		format = "eh_frame"
	}
	return &trace.SyntaxError{Format: format, Offset: int64(at), Err: err}
}
