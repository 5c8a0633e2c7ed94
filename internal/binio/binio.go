// Package binio reads and appends fixed-width binary fields in either byte
// order, with pointers of four or eight bytes.
//
// [Order] works on slices whose length the caller has checked. [Cursor] moves
// through a slice, checks every step and keeps the first failure.
package binio

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"
)

// ErrShort reports that the data ends inside a field.
var ErrShort = errors.New("data ends inside a field")

// Order is the byte order and pointer width of a machine. Its methods panic if
// a slice is too short; check its length first.
type Order struct {
	Big     bool
	Pointer int // size of a pointer in bytes, 4 or 8
}

// U16 returns the 16-bit number at the start of b.
func (o Order) U16(b []byte) uint16 {
	v := binary.LittleEndian.Uint16(b)
	if o.Big {
		v = bits.ReverseBytes16(v)
	}
	return v
}

// U32 returns the 32-bit number at the start of b.
func (o Order) U32(b []byte) uint32 {
	v := binary.LittleEndian.Uint32(b)
	if o.Big {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// U64 returns the 64-bit number at the start of b.
func (o Order) U64(b []byte) uint64 {
	v := binary.LittleEndian.Uint64(b)
	if o.Big {
		v = bits.ReverseBytes64(v)
	}
	return v
}

// Ptr returns the pointer at the start of b, zero-extended.
func (o Order) Ptr(b []byte) uint64 {
	if o.Pointer == 8 {
		return o.U64(b)
	}
	return uint64(o.U32(b))
}

// AppendU16 appends v to dst and returns the extended slice.
func (o Order) AppendU16(dst []byte, v uint16) []byte {
	if o.Big {
		v = bits.ReverseBytes16(v)
	}
	return binary.LittleEndian.AppendUint16(dst, v)
}

// AppendU32 appends v to dst and returns the extended slice.
func (o Order) AppendU32(dst []byte, v uint32) []byte {
	if o.Big {
		v = bits.ReverseBytes32(v)
	}
	return binary.LittleEndian.AppendUint32(dst, v)
}

// PutU32 writes v to the start of b.
func (o Order) PutU32(b []byte, v uint32) {
	if o.Big {
		v = bits.ReverseBytes32(v)
	}
	binary.LittleEndian.PutUint32(b, v)
}

// AppendU64 appends v to dst and returns the extended slice.
func (o Order) AppendU64(dst []byte, v uint64) []byte {
	if o.Big {
		v = bits.ReverseBytes64(v)
	}
	return binary.LittleEndian.AppendUint64(dst, v)
}

// AppendPtr appends v as a pointer, truncated to the pointer's width.
func (o Order) AppendPtr(dst []byte, v uint64) []byte {
	if o.Pointer == 8 {
		return o.AppendU64(dst, v)
	}
	return o.AppendU32(dst, uint32(v))
}

// Write writes all of b or returns an error.
func Write(w io.Writer, b []byte) error {
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
