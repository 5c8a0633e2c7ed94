package binio

// Cursor reads consecutive fields from a slice. After the first failure every
// read returns zero and [Cursor.Err] the failure, so one check per packet is
// enough. The slices it returns share the memory of the slice it reads.
type Cursor struct {
	order Order
	data  []byte
	off   int
	err   error
}

// NewCursor returns a cursor at the start of data.
func NewCursor(data []byte, order Order) Cursor {
	return Cursor{order: order, data: data}
}

// Err returns the first failure, or nil.
func (c *Cursor) Err() error { return c.err }

// Fail makes err the cursor's failure if it has none yet.
func (c *Cursor) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Offset returns the number of bytes read.
func (c *Cursor) Offset() int { return c.off }

// Len returns the number of bytes left; 0 after a failure.
func (c *Cursor) Len() int {
	if c.err != nil {
		return 0
	}
	return len(c.data) - c.off
}

// Fits reports whether n items of at least size bytes each can follow, and
// fails the cursor if not. Call it before allocating memory for a count from
// the data.
func (c *Cursor) Fits(n uint64, size int) bool {
	if c.err != nil {
		return false
	}
	if n > uint64(c.Len()/size) {
		c.Fail(ErrShort)
		return false
	}
	return true
}

// Bytes returns the next n bytes, or nil on failure.
func (c *Cursor) Bytes(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.data)-c.off {
		c.Fail(ErrShort)
		return nil
	}
	b := c.data[c.off : c.off+n : c.off+n]
	c.off += n
	return b
}

// U8 reads one byte.
func (c *Cursor) U8() uint8 {
	if b := c.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// U16 reads a 16-bit number.
func (c *Cursor) U16() uint16 {
	if b := c.Bytes(2); b != nil {
		return c.order.U16(b)
	}
	return 0
}

// U32 reads a 32-bit number.
func (c *Cursor) U32() uint32 {
	if b := c.Bytes(4); b != nil {
		return c.order.U32(b)
	}
	return 0
}

// Ptr reads a pointer, zero-extended.
func (c *Cursor) Ptr() uint64 {
	if b := c.Bytes(c.order.Pointer); b != nil {
		return c.order.Ptr(b)
	}
	return 0
}
