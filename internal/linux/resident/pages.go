package resident

import "math/bits"

// Bits of an entry of /proc/PID/pagemap.
const (
	entryPresent   = 1 << 63
	entrySwapped   = 1 << 62
	entryExclusive = 1 << 56 // only this process maps the page
)

// Pages holds which pages of a range of addresses are resident.
type Pages struct {
	Start, End uint64 // whole pages
	size       uint64 // of a page, in bytes
	// A bit for each page. A resident page is counted by the kernel. A page that can be read is
	// that, or the kernel's page of zeros.
	resident, readable, swapped []uint64
	others                      uint64 // bytes in pages that are present and not exclusive
}

// newPages returns the pages of a range, without any that is resident.
func newPages(start, end, size uint64) *Pages {
	n := (end - start) / size
	words := (n + 63) / 64
	return &Pages{
		Start: start, End: start + n*size, size: size,
		resident: make([]uint64, words), readable: make([]uint64, words), swapped: make([]uint64, words),
	}
}

// set sets the entry of page number i from pagemap.
func (p *Pages) set(i, entry uint64) {
	bit := uint64(1) << (i % 64)
	switch {
	case entry&entryPresent == 0:
		if entry&entrySwapped != 0 {
			p.swapped[i/64] |= bit
		}
		return
	case entry&entryExclusive != 0:
		p.resident[i/64] |= bit
	default:
		p.others += p.size
	}
	p.readable[i/64] |= bit
}

// finish decides about pages that are present and not exclusive. Such a page is either shared,
// or the page of zeros, which the kernel does not count. A range normally has only one of the
// two kinds. shared is how many bytes of the range the kernel counts as resident and shared.
func (p *Pages) finish(shared uint64) {
	if 2*shared > p.others {
		copy(p.resident, p.readable)
	}
}

// Readable reports whether the page at an address can be read without a page fault.
func (p *Pages) Readable(addr uint64) bool { return p.is(p.readable, addr) }

// Swapped reports whether the page at an address is swapped out.
func (p *Pages) Swapped(addr uint64) bool { return p.is(p.swapped, addr) }

func (p *Pages) is(set []uint64, addr uint64) bool {
	if addr < p.Start || addr >= p.End {
		return false
	}
	i := (addr - p.Start) / p.size
	return set[i/64]>>(i%64)&1 != 0
}

// Resident returns how many bytes of [start, end) are in resident pages.
func (p *Pages) Resident(start, end uint64) uint64 { return p.count(p.resident, start, end) }

// SwappedOut returns how many bytes of [start, end) are in pages that are swapped out.
func (p *Pages) SwappedOut(start, end uint64) uint64 { return p.count(p.swapped, start, end) }

func (p *Pages) count(set []uint64, start, end uint64) uint64 {
	start, end = max(start, p.Start), min(end, p.End)
	if start >= end {
		return 0
	}
	first, last := (start-p.Start)/p.size, (end-1-p.Start)/p.size
	if first == last {
		return (end - start) * (set[first/64] >> (first % 64) & 1)
	}
	n := p.size * ones(set, first, last+1)
	n -= (start - p.Start) % p.size * (set[first/64] >> (first % 64) & 1)
	n -= (p.size - 1 - (end-1-p.Start)%p.size) * (set[last/64] >> (last % 64) & 1)
	return n
}

// ones returns how many of the bits from first up to last are set.
func ones(set []uint64, first, last uint64) (n uint64) {
	for i := first / 64; i <= (last-1)/64; i++ {
		w := set[i]
		if i == first/64 {
			w &= ^uint64(0) << (first % 64)
		}
		if i == (last-1)/64 && last%64 != 0 {
			w &= 1<<(last%64) - 1
		}
		n += uint64(bits.OnesCount64(w))
	}
	return n
}

// NextReadable returns the address of the first page that can be read, beginning with the page
// that contains addr, or the end.
func (p *Pages) NextReadable(addr uint64) uint64 {
	if addr >= p.End {
		return p.End
	}
	addr = max(addr, p.Start)
	for i := (addr - p.Start) / p.size; i < (p.End-p.Start)/p.size; {
		if w := p.readable[i/64] >> (i % 64); w != 0 {
			return p.Start + (i+uint64(bits.TrailingZeros64(w)))*p.size
		}
		i = i/64*64 + 64
	}
	return p.End
}
