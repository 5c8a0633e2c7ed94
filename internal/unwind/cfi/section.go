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
	r := reader{Section: s, big: s.big(), cies: make(map[int]*CIE)}
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

// reader reads the entries of a section.
type reader struct {
	*Section
	big    bool
	cies   map[int]*CIE // by offset
	last   *CIE
	lastAt int
}

type kind uint8

const (
	isEnd kind = iota // a terminator
	isCIE
	isFDE
)

// entry is the frame of a CIE or FDE.
type entry struct {
	kind       kind
	start, end int
	body       int // what follows the CIE pointer
	cie        int // an FDE's, where it begins
}

// entry reads the head of the entry at the given offset. An error means that
// its end is not known.
func (r *reader) entry(at int) (entry, error) {
	c := cursor{b: r.Data, at: at, end: len(r.Data), big: r.big}
	e := entry{start: at}
	size, length := 4, c.uint(4)
	if length == 0xffffffff {
		size, length = 8, c.uint(8)
	}
	if c.short {
		return e, r.fail(at, fmt.Errorf("length of an entry: %w", trace.ErrTruncated))
	}
	if length > uint64(c.end-c.at) {
		return e, r.fail(at, fmt.Errorf("entry of %d bytes: %w", length, trace.ErrTruncated))
	}
	e.end = c.at + int(length)
	if length == 0 {
		return e, nil
	}
	c.end = e.end
	field := c.at
	if r.EH {
		size = 4 // also in entries with a long length (LSB 5.0, 10.6.1.1)
	}
	id := c.uint(size)
	e.body, e.kind = c.at, isFDE
	switch {
	case c.short:
		e.cie = -1
	case r.EH && id == 0, !r.EH && id == ^uint64(0)>>(64-8*size):
		e.kind = isCIE
	case r.EH && id <= uint64(field):
		e.cie = field - int(id)
	case !r.EH && id < uint64(len(r.Data)):
		e.cie = int(id)
	default:
		e.cie = -1
	}
	return e, nil
}

// fde reads an FDE.
func (r *reader) fde(e *entry, f *FDE) error {
	cie, err := r.cie(e)
	if err != nil {
		return err
	}
	c := cursor{b: r.Data, at: e.body, end: e.end, big: r.big}
	start := r.pointer(&c, cie.pointers)
	length := c.value(cie.pointers & formatMask)
	if cie.sized {
		c.block(c.uleb()) // language-specific data
	}
	if c.short {
		return r.fail(e.start, fmt.Errorf("frame description: %w", trace.ErrTruncated))
	}
	if start+length < start {
		return r.fail(e.start, fmt.Errorf("range of %#x bytes at %#x: %w", length, start, trace.ErrMalformed))
	}
	*f = FDE{CIE: cie, Start: start, End: start + length, Instructions: r.Data[c.at:e.end:e.end], Offset: e.start, at: c.at}
	return nil
}
