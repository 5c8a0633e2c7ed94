package binio

import (
	"bytes"
	"errors"
	"testing"
)

func TestOrder(t *testing.T) {
	data := []byte{0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08}
	tests := []struct {
		name  string
		order Order
		u16   uint16
		u32   uint32
		u64   uint64
		ptr   uint64
	}{
		{"little 4", Order{Pointer: 4}, 0x0201, 0x04030201, 0x0807060504030201, 0x04030201},
		{"little 8", Order{Pointer: 8}, 0x0201, 0x04030201, 0x0807060504030201, 0x0807060504030201},
		{"big 4", Order{Big: true, Pointer: 4}, 0x0102, 0x01020304, 0x0102030405060708, 0x01020304},
		{"big 8", Order{Big: true, Pointer: 8}, 0x0102, 0x01020304, 0x0102030405060708, 0x0102030405060708},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.order
			if got := o.U16(data); got != tt.u16 {
				t.Errorf("U16 = %#x, want %#x", got, tt.u16)
			}
			if got := o.U32(data); got != tt.u32 {
				t.Errorf("U32 = %#x, want %#x", got, tt.u32)
			}
			if got := o.U64(data); got != tt.u64 {
				t.Errorf("U64 = %#x, want %#x", got, tt.u64)
			}
			if got := o.Ptr(data); got != tt.ptr {
				t.Errorf("Ptr = %#x, want %#x", got, tt.ptr)
			}
			if got := o.AppendU16(nil, tt.u16); !bytes.Equal(got, data[:2]) {
				t.Errorf("AppendU16 = %x", got)
			}
			if got := o.AppendU32(nil, tt.u32); !bytes.Equal(got, data[:4]) {
				t.Errorf("AppendU32 = %x", got)
			}
			put := make([]byte, 4)
			if o.PutU32(put, tt.u32); !bytes.Equal(put, data[:4]) {
				t.Errorf("PutU32 = %x", put)
			}
			if got := o.AppendU64(nil, tt.u64); !bytes.Equal(got, data) {
				t.Errorf("AppendU64 = %x", got)
			}
			if got := o.AppendPtr(nil, tt.ptr); !bytes.Equal(got, data[:o.Pointer]) {
				t.Errorf("AppendPtr = %x", got)
			}
		})
	}
}

func TestAppendPtrCutsToWidth(t *testing.T) {
	got := Order{Pointer: 4}.AppendPtr(nil, 0x1122334455667788)
	if want := []byte{0x88, 0x77, 0x66, 0x55}; !bytes.Equal(got, want) {
		t.Errorf("AppendPtr = %x, want %x", got, want)
	}
}

func TestCursorReadsInOrder(t *testing.T) {
	c := NewCursor([]byte{7, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'}, Order{Pointer: 8})
	if v := c.U8(); v != 7 {
		t.Errorf("U8 = %d", v)
	}
	if v := c.U16(); v != 1 {
		t.Errorf("U16 = %d", v)
	}
	if v := c.U32(); v != 2 {
		t.Errorf("U32 = %d", v)
	}
	if v := c.Ptr(); v != 3 {
		t.Errorf("Ptr = %d", v)
	}
	if c.Offset() != 15 || c.Len() != 2 {
		t.Errorf("offset %d, len %d; want 15, 2", c.Offset(), c.Len())
	}
	if v := c.Bytes(2); string(v) != "ab" {
		t.Errorf("Bytes = %q", v)
	}
	if err := c.Err(); err != nil {
		t.Errorf("Err = %v", err)
	}
}

func TestCursorErrorSticks(t *testing.T) {
	reads := map[string]func(*Cursor) bool{
		"U8":    func(c *Cursor) bool { return c.U8() == 0 },
		"U16":   func(c *Cursor) bool { return c.U16() == 0 },
		"U32":   func(c *Cursor) bool { return c.U32() == 0 },
		"Ptr":   func(c *Cursor) bool { return c.Ptr() == 0 },
		"Bytes": func(c *Cursor) bool { return c.Bytes(1) == nil },
		"Fits":  func(c *Cursor) bool { return !c.Fits(0, 1) },
		"Len":   func(c *Cursor) bool { return c.Len() == 0 },
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			c := NewCursor([]byte{1, 2, 3}, Order{Pointer: 8})
			c.U32() // too long
			if !errors.Is(c.Err(), ErrShort) {
				t.Fatalf("Err = %v, want ErrShort", c.Err())
			}
			if !read(&c) {
				t.Error("a read after a failure returns data")
			}
			other := errors.New("other")
			if c.Fail(other); !errors.Is(c.Err(), ErrShort) {
				t.Errorf("the first failure was replaced: %v", c.Err())
			}
		})
	}
}

func TestCursorBounds(t *testing.T) {
	tests := []struct {
		name string
		read func(*Cursor)
		ok   bool
	}{
		{"U8", func(c *Cursor) { c.Bytes(3); c.U8() }, true},
		{"U8 past end", func(c *Cursor) { c.Bytes(4); c.U8() }, false},
		{"U16", func(c *Cursor) { c.Bytes(2); c.U16() }, true},
		{"U16 past end", func(c *Cursor) { c.Bytes(3); c.U16() }, false},
		{"Ptr", func(c *Cursor) { c.Ptr() }, true},
		{"Ptr past end", func(c *Cursor) { c.U8(); c.Ptr() }, false},
		{"Bytes negative", func(c *Cursor) { c.Bytes(-1) }, false},
		{"Fits", func(c *Cursor) { c.Fits(2, 2) }, true},
		{"Fits not", func(c *Cursor) { c.Fits(3, 2) }, false},
		{"Fits overflow", func(c *Cursor) { c.Fits(1<<63, 4) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := NewCursor(make([]byte, 4), Order{Pointer: 4})
			tt.read(&c)
			if got := c.Err() == nil; got != tt.ok {
				t.Errorf("ok = %v, want %v (%v)", got, tt.ok, c.Err())
			}
		})
	}
}

func TestBytesCannotGrowIntoTheRest(t *testing.T) {
	data := []byte{1, 2, 3, 4}
	c := NewCursor(data, Order{Pointer: 4})
	_ = append(c.Bytes(2), 9)
	if data[2] != 3 {
		t.Error("an append to the result wrote into the data")
	}
}
