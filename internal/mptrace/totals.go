package mptrace

// Sum is a number of things and their bytes. Sums of bytes are modulo 2^64.
type Sum struct {
	Count, Bytes uint64
}

// Add adds one thing.
func (s *Sum) Add(bytes uint64) {
	s.Count++
	s.Bytes += bytes
}

// Sub takes one thing away.
func (s *Sum) Sub(bytes uint64) {
	s.Count--
	s.Bytes -= bytes
}

// Totals are the statistics of a stream.
type Totals struct {
	Events    uint64 // A, R and F
	Allocated Sum    // by A and R, of R the new size
	Freed     Sum    // by F and R, of R the old size
	Live      Sum
	Peak      Sum // the most of each, not at the same time
	Reserved  Sum // H
	Internal  Sum // I
	// Smallest and Largest are of the sizes of A and R. Smallest does not
	// heed sizes of 0.
	Smallest, Largest uint64
}

// allocate counts the size that an A or R gives to a block.
func (t *Totals) allocate(size uint64) {
	t.Allocated.Add(size)
	t.Live.Add(size)
	t.Largest = max(t.Largest, size)
	if size-1 < t.Smallest-1 { // 0 is the largest of all here
		t.Smallest = size
	}
}

// free counts the size of a block that an F or R ends.
func (t *Totals) free(size uint64) {
	t.Freed.Add(size)
	t.Live.Sub(size)
}

// peak heeds what is live now.
func (t *Totals) peak() {
	t.Peak.Count = max(t.Peak.Count, t.Live.Count)
	t.Peak.Bytes = max(t.Peak.Bytes, t.Live.Bytes)
}
