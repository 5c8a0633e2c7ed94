package profile

// Bins holds the numbers of blocks by exact size.
type Bins struct {
	Allocated, Unfreed Sizes
}

// Sizes holds the numbers of blocks by exact size below a limit, and sums for
// larger blocks.
type Sizes struct {
	Count []uint64 // by size; its length is the limit
	Above struct{ Count, Bytes uint64 }
}

func newSizes(limit int) Sizes { return Sizes{Count: make([]uint64, limit)} }

func (s *Sizes) add(size uint64) {
	if size < uint64(len(s.Count)) {
		s.Count[size]++
		return
	}
	s.Above.Count++
	s.Above.Bytes += size
}

func (s *Sizes) remove(size uint64) {
	if size < uint64(len(s.Count)) {
		s.Count[size]--
		return
	}
	s.Above.Count--
	s.Above.Bytes -= size
}

// Bins returns the numbers of blocks by size. The result changes with the next
// Add.
func (p *Profile) Bins() *Bins { return &p.bins }
