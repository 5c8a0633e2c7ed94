package cfi

import (
	"bytes"
	"fmt"
	"math"

	"rtrace-bpf/trace"
)

// Limits of a CIE. All FDEs share it, so its size counts many times.
const (
	maxAugmentation = 16  // characters
	maxInitial      = 512 // bytes of instructions; compilers need about ten
)

// maxKept is how many CIEs a reader keeps. A .debug_frame may have one per source file, but the
// FDEs follow their CIE.
const maxKept = 1 << 12

// CIE is a common information entry: the part that several FDEs share.
type CIE struct {
	CodeAlign uint64 // factor of distances in code
	DataAlign int64  // factor of offsets in the stack
	ReturnReg uint8  // column that holds the rule for the return address
	Signal    bool   // the frames are those that a signal handler interrupted
	Initial   []byte // instructions to run before those of each FDE
	Offset    int    // offset of the entry in the section

	section  *Section
	at       int      // offset of the instructions in the section
	pointers encoding // of the addresses in FDEs
	sized    bool     // FDEs have augmentation data, with its length
}

// cie returns the CIE of an FDE.
func (r *Reader) cie(e *entry) (*CIE, error) {
	if r.last != nil && r.lastAt == e.cie {
		return r.last, nil
	}
	cie, ok := r.cies[e.cie]
	if !ok {
		head := entry{kind: isEnd}
		var err error
		if e.cie >= 0 {
			head, err = r.entry(e.cie)
		}
		if err != nil || head.kind != isCIE {
			return nil, r.section.fail(e.start, fmt.Errorf("the frame description refers to no common entry: %w", trace.ErrMalformed))
		}
		if cie, err = r.readCIE(&head); err != nil {
			return nil, err
		}
		if len(r.cies) == maxKept {
			clear(r.cies)
		}
		r.cies[e.cie] = cie
	}
	r.last, r.lastAt = cie, e.cie
	return cie, nil
}

func (r *Reader) readCIE(e *entry) (*CIE, error) {
	c := cursor{b: r.section.Data, at: e.body, end: e.end, big: r.big}
	cie := &CIE{section: r.section, Offset: e.start}
	err := r.parseCIE(&c, cie)
	switch {
	case err == nil && c.short:
		err = trace.ErrTruncated
	case err == nil && c.end-c.at > maxInitial:
		err = fmt.Errorf("%d bytes of instructions: %w", c.end-c.at, trace.ErrLimit)
	}
	if err != nil {
		return nil, r.section.fail(e.start, fmt.Errorf("common entry: %w", err))
	}
	cie.Initial, cie.at = r.section.Data[c.at:c.end:c.end], c.at
	return cie, nil
}

// parseCIE reads everything before the instructions.
func (r *Reader) parseCIE(c *cursor, cie *CIE) error {
	version := c.u8()
	if version != 1 && version != 3 && (version != 4 || r.section.EH) {
		return fmt.Errorf("version %d: %w", version, trace.ErrUnsupported)
	}
	rest := c.b[c.at:min(c.end, c.at+maxAugmentation+1)]
	n := bytes.IndexByte(rest, 0)
	if n < 0 {
		return fmt.Errorf("augmentation: %w", trace.ErrLimit)
	}
	augmentation := rest[:n]
	c.at += n + 1
	if version == 4 {
		if address, selector := c.u8(), c.u8(); int(address) != r.section.Machine.Word() || selector != 0 {
			return fmt.Errorf("addresses of %d bytes in segments of %d: %w", address, selector, trace.ErrUnsupported)
		}
	}
	if bytes.HasPrefix(augmentation, []byte("eh")) {
		c.uint(r.section.Machine.Word()) // pointer to a table of exceptions, by GCC 2
		augmentation = augmentation[2:]
	}
	cie.CodeAlign, cie.DataAlign = c.uleb(), c.sleb()
	column := uint64(0)
	if version == 1 {
		column = uint64(c.u8())
	} else {
		column = c.uleb()
	}
	if column > math.MaxUint8 {
		return fmt.Errorf("return address in register %d: %w", column, trace.ErrUnsupported)
	}
	cie.ReturnReg = uint8(column)
	return r.augment(c, cie, augmentation)
}

// augment reads the data that the augmentation string describes.
func (r *Reader) augment(c *cursor, cie *CIE, augmentation []byte) error {
	if len(augmentation) == 0 {
		return nil
	}
	if augmentation[0] != 'z' {
		return fmt.Errorf("augmentation %q: %w", augmentation, trace.ErrUnsupported)
	}
	cie.sized = true
	length := c.uleb()
	if length > uint64(c.end-c.at) {
		return fmt.Errorf("augmentation of %d bytes: %w", length, trace.ErrTruncated)
	}
	outer := c.end
	c.end = c.at + int(length)
	for _, letter := range augmentation[1:] {
		if err := r.letter(c, cie, letter); err != nil {
			return err
		}
	}
	c.at, c.end = c.end, outer
	return nil
}

func (r *Reader) letter(c *cursor, cie *CIE, letter byte) error {
	switch letter {
	case 'R':
		cie.pointers = encoding(c.u8())
		return cie.pointers.check()
	case 'P': // the personality routine
		return r.section.skip(c, encoding(c.u8()))
	case 'L': // the encoding of the language-specific data
		c.u8()
	case 'S':
		cie.Signal = true
	case 'B', 'G': // arm64: return addresses signed with key B, tagged frames
	default:
		return fmt.Errorf("augmentation %q: %w", letter, trace.ErrUnsupported)
	}
	return nil
}
