package cfi

import (
	"fmt"

	"rtrace-bpf/trace"
)

// Reader reads single entries of a section. It keeps the CIEs that it has read.
type Reader struct {
	section *Section
	big     bool
	cies    map[int]*CIE // by offset
	last    *CIE
	lastAt  int
}

// NewReader returns a reader of the section.
func NewReader(s *Section) *Reader {
	return &Reader{section: s, big: s.big(), cies: make(map[int]*CIE)}
}

// Read reads the FDE that begins at the given offset into f.
func (r *Reader) Read(offset int, f *FDE) error {
	e, err := r.entry(offset)
	if err == nil && e.kind != isFDE {
		err = r.section.fail(offset, fmt.Errorf("no frame description: %w", trace.ErrMalformed))
	}
	if err != nil {
		return err
	}
	return r.fde(&e, f)
}

type kind uint8

const (
	isEnd kind = iota // a terminator
	isCIE
	isFDE
)

// entry is the extent of a CIE or FDE.
type entry struct {
	kind       kind
	start, end int
	body       int // what follows the CIE pointer
	cie        int // offset of the CIE, if this is an FDE
}

// entry reads the header of the entry at the given offset. After an error the end of the entry
// is unknown.
func (r *Reader) entry(at int) (entry, error) {
	c := cursor{b: r.section.Data, at: at, end: len(r.section.Data), big: r.big}
	e := entry{start: at}
	size, length := 4, c.uint(4)
	if length == 0xffffffff {
		size, length = 8, c.uint(8)
	}
	if c.short {
		return e, r.section.fail(at, fmt.Errorf("length of an entry: %w", trace.ErrTruncated))
	}
	if length > uint64(c.end-c.at) {
		return e, r.section.fail(at, fmt.Errorf("entry of %d bytes: %w", length, trace.ErrTruncated))
	}
	e.end = c.at + int(length)
	if length == 0 {
		return e, nil
	}
	c.end = e.end
	field := c.at
	if r.section.EH {
		size = 4 // also in entries with a 64-bit length (LSB 5.0, 10.6.1.1)
	}
	id := c.uint(size)
	e.body, e.kind = c.at, isFDE
	switch {
	case c.short:
		e.cie = -1
	case r.section.EH && id == 0, !r.section.EH && id == ^uint64(0)>>(64-8*size):
		e.kind = isCIE
	case r.section.EH && id <= uint64(field):
		e.cie = field - int(id)
	case !r.section.EH && id < uint64(len(r.section.Data)):
		e.cie = int(id)
	default:
		e.cie = -1
	}
	return e, nil
}

// fde reads an FDE.
func (r *Reader) fde(e *entry, f *FDE) error {
	cie, err := r.cie(e)
	if err != nil {
		return err
	}
	c := cursor{b: r.section.Data, at: e.body, end: e.end, big: r.big}
	start := r.section.pointer(&c, cie.pointers)
	length := r.section.value(&c, cie.pointers&formatMask)
	if cie.sized {
		c.block(c.uleb()) // language-specific data
	}
	if c.short {
		return r.section.fail(e.start, fmt.Errorf("frame description: %w", trace.ErrTruncated))
	}
	if start+length < start || length > 0 && start+length-1 > r.section.Machine.highest() {
		return r.section.fail(e.start, fmt.Errorf("range of %#x bytes at %#x: %w", length, start, trace.ErrMalformed))
	}
	*f = FDE{CIE: cie, Start: start, End: start + length, Instructions: r.section.Data[c.at:e.end:e.end], Offset: e.start, at: c.at}
	return nil
}
