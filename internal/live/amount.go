package live

// Amount is a number of blocks and the sum of their sizes in bytes, both modulo 2^64.
type Amount struct {
	Blocks, Bytes uint64
}

// AddBlock adds one block of size bytes.
func (a *Amount) AddBlock(size uint64) { a.Blocks, a.Bytes = a.Blocks+1, a.Bytes+size }

// SubBlock subtracts one block of size bytes.
func (a *Amount) SubBlock(size uint64) { a.Blocks, a.Bytes = a.Blocks-1, a.Bytes-size }

// Add adds b to a.
func (a *Amount) Add(b Amount) { a.Blocks, a.Bytes = a.Blocks+b.Blocks, a.Bytes+b.Bytes }

// Sub subtracts b from a.
func (a *Amount) Sub(b Amount) { a.Blocks, a.Bytes = a.Blocks-b.Blocks, a.Bytes-b.Bytes }

// Above reports whether a is more than b: more bytes, or as many bytes in more blocks.
func (a Amount) Above(b Amount) bool {
	return a.Bytes > b.Bytes || a.Bytes == b.Bytes && a.Blocks > b.Blocks
}
