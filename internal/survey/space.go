package survey

import (
	"cmp"
	"io"
	"slices"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/linux/resident"
)

// area is a mapping with the parts of it that were recognised.
type area struct {
	resident.Mapping
	pages  *resident.Pages // nil until they are needed
	failed bool            // the pages could not be read
	taken  []extent        // parts that have rows of their own, in no order
}

// extent is the addresses [start, end).
type extent struct{ start, end uint64 }

// anonymous reports whether an area is private memory without a file or a name of the kernel.
func (a *area) anonymous() bool {
	return a.Perms&proc.Shared == 0 && (a.Path == "" || a.named("[anon:"))
}

// writable reports whether an area is readable and writable, private and not executable.
func (a *area) writable() bool {
	const all = proc.Read | proc.Write | proc.Exec | proc.Shared
	return a.Perms&all == proc.Read|proc.Write
}

func (a *area) named(prefix string) bool {
	return len(a.Path) >= len(prefix) && a.Path[:len(prefix)] == prefix
}

// space is the memory of a process.
type space struct {
	memory  io.ReaderAt
	pagemap *resident.Pagemap
	page    uint64
	areas   []area // ordered by address
	last    int    // the area that was asked for last
	looked  uint64 // bytes of addresses whose pages were asked for
	beyond  bool   // there are more than maxLooked

	searched int // pages in which a stack was looked for
}

// maxLooked is the most bytes of addresses whose pages are read. What is beyond it is not divided.
const maxLooked = 1 << 40

// ReadAt implements io.ReaderAt.
func (s *space) ReadAt(b []byte, off int64) (int, error) { return s.memory.ReadAt(b, off) }

// find returns the index of the first area that ends after an address.
func (s *space) find(addr uint64) int {
	if s.last < len(s.areas) && addr >= s.areas[s.last].Start && addr < s.areas[s.last].End {
		return s.last
	}
	i, found := slices.BinarySearchFunc(s.areas, addr, func(a area, addr uint64) int { return cmp.Compare(a.End, addr) })
	if found {
		i++ // that one ends at the address
	}
	s.last = i
	return i
}

// at returns the area that contains an address, or nil.
func (s *space) at(addr uint64) *area {
	i := s.find(addr)
	if i >= len(s.areas) || s.areas[i].Start > addr {
		return nil
	}
	return &s.areas[i]
}

// pagesOf returns the pages of an area, or nil.
func (s *space) pagesOf(a *area) *resident.Pages {
	if a.pages != nil || a.failed {
		return a.pages
	}
	size := a.End - a.Start
	if a.failed = size > maxLooked-s.looked; a.failed {
		s.beyond = true
		return nil
	}
	s.looked += size
	var err error
	if a.pages, err = s.pagemap.Read(&a.Mapping); err != nil {
		a.failed = true
	}
	return a.pages
}

// Readable reports whether the page at an address is in private memory and present.
func (s *space) Readable(addr uint64) bool {
	a := s.at(addr)
	if a == nil || a.Perms&(proc.Read|proc.Shared) != proc.Read {
		return false
	}
	p := s.pagesOf(a)
	return p != nil && p.Readable(addr)
}

// Resident returns how many bytes of [start, end) are in resident pages.
func (s *space) Resident(start, end uint64) (n uint64) {
	for i := s.find(start); i < len(s.areas) && s.areas[i].Start < end; i++ {
		if p := s.pagesOf(&s.areas[i]); p != nil && s.areas[i].Resident > 0 {
			n += p.Resident(start, end)
		}
	}
	return n
}

// take marks a part of the memory as one that has a row of its own.
func (s *space) take(start, end uint64) {
	for i := s.find(start); i < len(s.areas) && s.areas[i].Start < end; i++ {
		a := &s.areas[i]
		a.taken = append(a.taken, extent{max(start, a.Start), min(end, a.End)})
	}
}

// free returns the parts of an area that are not taken, in order.
func (a *area) free() (parts []extent) {
	slices.SortFunc(a.taken, func(x, y extent) int { return cmp.Compare(x.start, y.start) })
	at := a.Start
	for _, t := range a.taken {
		if t.start > at {
			parts = append(parts, extent{at, t.start})
		}
		at = max(at, t.end)
	}
	if at < a.End {
		parts = append(parts, extent{at, a.End})
	}
	return parts
}
