package mptrace

// Sum is a number of blocks and their total size in bytes. Sizes are modulo
// 2^64.
type Sum struct {
	Count, Bytes uint64
}

// Add adds one block.
func (s *Sum) Add(bytes uint64) {
	s.Count++
	s.Bytes += bytes
}

// Sub subtracts one block.
func (s *Sum) Sub(bytes uint64) {
	s.Count--
	s.Bytes -= bytes
}

// Totals holds the statistics of a stream.
type Totals struct {
	Events    uint64 // A, R and F
	Allocated Sum    // by A and R; the new size of R
	Freed     Sum    // by F and R; the old size of R
	Live      Sum
	Peak      Sum // maximum of each, not at the same time
	Reserved  Sum // H
	Internal  Sum // I
	// Smallest and Largest are the extreme sizes of A and R. Smallest ignores
	// sizes of 0.
	Smallest, Largest uint64
}

// allocate counts the size that an A or R gives to a block.
func (t *Totals) allocate(size uint64) {
	t.Allocated.Add(size)
	t.Live.Add(size)
	t.Largest = max(t.Largest, size)
	if size-1 < t.Smallest-1 { // 0 becomes the largest number
		t.Smallest = size
	}
}

// free counts the size of a block that an F or R ends.
func (t *Totals) free(size uint64) {
	t.Freed.Add(size)
	t.Live.Sub(size)
}

// peak updates the peak with the live amount.
func (t *Totals) peak() {
	t.Peak.Count = max(t.Peak.Count, t.Live.Count)
	t.Peak.Bytes = max(t.Peak.Bytes, t.Live.Bytes)
}
