package glibcheap

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"rtrace-bpf/internal/heap"
)

const page = 4096

// memory is a made-up address space of whole pages, all of which are resident.
type memory map[uint64][]byte

func (m memory) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		at := uint64(off) + uint64(n)
		p := m[at/page]
		if p == nil {
			return n, errors.New("not mapped")
		}
		n += copy(b[n:], p[at%page:])
	}
	return n, nil
}

func (m memory) Readable(addr uint64) bool { return m[addr/page] != nil }

func (m memory) Resident(start, end uint64) (n uint64) {
	for at := start; at < end; {
		next := min(end, at/page*page+page)
		if m[at/page] != nil {
			n += next - at
		}
		at = next
	}
	return n
}

// put writes words, and maps the pages that they need.
func (m memory) put(addr uint64, words ...uint64) {
	for _, w := range words {
		if m[addr/page] == nil {
			m[addr/page] = make([]byte, page)
		}
		binary.LittleEndian.PutUint64(m[addr/page][addr%page:], w)
		addr += word
	}
}

// What a library's memory looks like: its data with the main arena, a heap of brk, and an arena
// of its own with two heaps.
const (
	dataStart = 0x7f0000001000
	mainAt    = dataStart + 0x40
	brkStart  = 0x550000000000
	brkSize   = 64 * page
	second    = 0x7e0004000000 // the first heap of the other arena
	third     = 0x7e0010000000
	secondAt  = second + 48 // since glibc 2.35
)

// version is how a version of the library lays out its memory.
type version struct {
	name     string
	bins     uint64 // offset of the bins in an arena
	head     uint64 // bytes of struct heap_info
	cache    int    // size of the block with the cache of a thread
	entries  uint64 // offset of the lists in it
	mixed    bool   // links are combined with their addresses
	fastBins bool
	padded   bool // the counts in malloc_par
}

var (
	glibc236 = version{"2.36", 112, 48, 0x290, 128, true, true, true}
	versions = []version{
		{"2.26", 104, 32, 0x250, 64, false, true, false},
		{"2.28", 112, 32, 0x250, 64, false, true, false},
		{"2.31", 112, 32, 0x290, 128, false, true, false},
		{"2.33", 112, 32, 0x290, 128, true, true, false},
		glibc236,
		{"2.42", 112, 48, 0x300, 152, true, true, true},
		{"without fast bins", 24, 48, 0x300, 152, true, false, true},
	}
)

var (
	data = []Extent{{dataStart, dataStart + 2*page}}
	brk  = Extent{brkStart, brkStart + brkSize}
)

// arena writes an empty arena.
func (m memory) arena(v version, at, top, next, system uint64) {
	first := at + v.bins
	for i := range uint64(bins) {
		m.put(first+i*2*word, first+i*2*word-2*word, first+i*2*word-2*word)
	}
	m.put(first-topField, top)
	m.put(first+nextField, next, 0, 1, system, system)
}

// blocks writes consecutive blocks. A size below 0 is of a free block. It returns the address
// after them.
func (m memory) blocks(at uint64, sizes ...int) uint64 {
	before := uint64(1)
	last := uint64(0)
	for _, n := range sizes {
		size := uint64(max(n, -n))
		if before == 0 {
			m.put(at, last)
		}
		m.put(at+word, size|before)
		before, last = 1, size
		if n < 0 {
			before = 0
		}
		at += size
	}
	if before == 0 {
		m.put(at, last)
	}
	m.put(at+word, before) // a size follows
	return at
}

// top writes the last block of an arena.
func (m memory) top(at, end uint64) {
	w := binary.LittleEndian.Uint64(m[(at+word)/page][(at+word)%page:])
	m.put(at+word, (end-at)|w&flagPrevious)
}

// library returns the memory of a version.
func library(v version) memory {
	m := memory{}
	for at := uint64(brkStart); at < brkStart+brkSize; at += page {
		m.put(at, 0)
	}
	link := func(at, to uint64) {
		if v.mixed {
			to ^= at >> 12
		}
		m.put(at, to)
	}
	// The main heap: a thread cache with two blocks of 48 bytes, live blocks, a hole, a fast bin.
	top := m.blocks(brkStart, v.cache, 48, 48, 1024, -4096, 64, 32, 32)
	m.top(top, brkStart+brkSize)
	cache := uint64(brkStart + 2*word)
	one := uint64(brkStart + v.cache + 2*word)
	two := one + 48
	m.put(cache+v.entries+word, one)
	link(one, two)
	link(two, 0)
	other := uint64(second) + v.head
	m.arena(v, mainAt, top, other, brkSize)
	fast := top - 32 // the last block
	if v.fastBins {
		m.put(mainAt+v.bins-topField-fastBinsSize, fast)
		link(fast+2*word, 0)
	}
	// malloc_par: 3 blocks with 5 pages in mappings, before the start of the heap.
	counts := []uint64{0, 3 | 65536<<32, 4}
	if v.padded {
		counts = []uint64{3 << 32, 65536 | 4<<32, 0}
	}
	m.put(dataStart+page, append(counts, 5*page, 9*page, brkStart)...)

	for i := range uint64(4) {
		m.put(second+i*page+256*word, 0)
	}
	state := (other + v.bins + afterState + 15) &^ 15
	end := uint64(second + 4*page)
	left := int(end - state - 128 - 512 - 32)
	at := m.blocks(state, 128, 512, -left)
	m.put(at+word, 16, 0, 1) // the fences at the end of a heap
	m.put(third, other, second, 2*page, 2*page, page)
	m.put(third+page, 0)
	at = m.blocks(third+v.head, 256)
	m.top(at, third+2*page)
	m.arena(v, other, at, mainAt, 6*page)
	m.put(second, other, 0, 4*page, 4*page)
	return m
}

func find(m memory) *Finder {
	f := Find(m, page, data, brk)
	f.Walk(context.Background())
	return f
}

// All parts of a heap are found, and each byte is counted once.
func TestHeap(t *testing.T) {
	for _, v := range versions {
		t.Run(v.name, func(t *testing.T) { whole(t, v) })
	}
}

func whole(t *testing.T, v version) {
	f := find(library(v))
	h := f.Heap
	if len(h.Arenas) != 2 || h.Why != "" {
		t.Fatalf("%+v", h)
	}
	if !h.Counted || h.CountedBlocks != 3 || h.CountedMapped != 5*page {
		t.Errorf("the library's count is %+v", h)
	}
	a := h.Arenas[0]
	all := func(n, bytes uint64) heap.Amount { return heap.Amount{Blocks: n, Bytes: bytes, Resident: bytes} }
	cache := uint64(v.cache)
	live, fast := all(4, cache+1024+64+32), all(1, 32)
	if !v.fastBins {
		live, fast = all(5, cache+1024+64+32+32), heap.Amount{}
	}
	for _, test := range []struct {
		name      string
		got, want heap.Amount
	}{
		{"live", a.Live, live},
		{"cached", a.Cached, all(2, 96)},
		{"fast", a.Fast, fast},
		{"free", a.Free, all(1, 4096)},
		{"top", a.Top, all(1, brkSize-cache-96-1024-4096-64-64)},
		{"unread", a.Unread, heap.Amount{}},
	} {
		if test.got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, test.got, test.want)
		}
	}
	want := heap.Hole{Address: brkStart + cache + 96 + 1024, Bytes: 4096, Resident: 4096, Next: 64, Above: all(3, 128)}
	if len(a.Holes) != 1 || a.Holes[0] != want {
		t.Errorf("holes %+v, want %+v", a.Holes, want)
	}
	b := h.Arenas[1]
	sum := Amounts([]heap.Arena{b})
	if b.Heaps != 2 || b.Live.Blocks != 3 || b.Live.Bytes != 128+512+256 || b.Free.Blocks != 1 || b.Why != "" ||
		sum.Live.Bytes+sum.Free.Bytes+sum.Top.Bytes+sum.Own.Bytes != 6*page {
		t.Errorf("%+v", b)
	}
	if h.ThreadCaches != 1 {
		t.Errorf("%d caches of threads", h.ThreadCaches)
	}
}

// A library whose malloc was not used has no arena, or an empty one.
func TestUnused(t *testing.T) {
	m := memory{}
	m.put(dataStart+page, 0)
	m.put(dataStart, 1, 2, 3)
	if f := find(m); len(f.Heap.Arenas) != 0 || f.Heap.Why == "" {
		t.Errorf("%+v", f.Heap)
	}
	m.arena(glibc236, mainAt, mainAt+binOffsets[0]-topField, mainAt, 0)
	if f := Find(m, page, data, Extent{}); len(f.Heap.Arenas) != 1 || f.Heap.Arenas[0].Heaps != 0 || f.Heap.Arenas[0].Why != "" {
		t.Errorf("%+v", f.Heap)
	}
}

// Other data at the beginning of the program break belongs to no block: that of a static program,
// or a copy of GLIBC_TUNABLES, with which the main arena does not have a multiple of 16 bytes.
func TestDataBeforeHeap(t *testing.T) {
	m := library(glibc236)
	const before, length = 64, 50
	m.put(brkStart-before, 0x1234, 0x5678, 0x9abc, 0, 0, 0, 0, 0)
	m.put(mainAt+glibc236.bins+systemMem, brkSize+before-length, brkSize+before-length)
	m.put(dataStart+page+5*word, brkStart-before+length)
	f := Find(m, page, data, Extent{brkStart - before, brkStart + brkSize})
	f.Walk(context.Background())
	if len(f.Heap.Arenas) != 2 {
		t.Fatalf("%+v", f.Heap)
	}
	// The library rounds the address of its first block up.
	if a := f.Heap.Arenas[0]; a.Unread.Bytes != 0 || a.Own.Bytes != before {
		t.Errorf("%+v", a)
	}
}

// After memory that is no block, the walk goes on. What is left out is counted.
func TestResume(t *testing.T) {
	m := library(glibc236)
	at := uint64(brkStart + 0x290 + 96)
	m.put(at+word, 7777) // the size of the block of 1,024 bytes
	a := find(m).Heap.Arenas[0]
	if a.Unread.Bytes != 1024 || a.Free.Bytes != 4096 || a.Why == "" || a.Live.Bytes != 0x290+64+32 {
		t.Errorf("%+v", a)
	}
}

// A page that is not resident is not read.
func TestNotResident(t *testing.T) {
	m := library(glibc236)
	delete(m, brkStart/page+1) // within the hole
	if a := find(m).Heap.Arenas[0]; a.Unread.Bytes != 0 && a.Free.Resident == 4096 {
		t.Errorf("%+v", a)
	}
	m = library(glibc236)
	delete(m, brkStart/page)
	a := find(m).Heap.Arenas[0]
	sum := Amounts([]heap.Arena{a})
	if a.Unread.Bytes == 0 || a.Why == "" || sum.Unread.Bytes+sum.Live.Bytes+sum.Free.Bytes+sum.Top.Bytes+sum.Own.Bytes+sum.Fast.Bytes+sum.Cached.Bytes != brkSize {
		t.Errorf("%+v", a)
	}
}

func TestMapped(t *testing.T) {
	const at = 0x7d0000000000
	m := memory{}
	for i := range uint64(40) {
		m.put(at+i*page, 9, 9)
	}
	m.put(at+2*page, 0, 3*page|flagMapped)                // pages 2 to 4
	m.put(at+5*page, 0, 2*page|flagMapped)                // directly after it
	m.put(at+12*page-16, 4*page-16, 8*page+16|flagMapped) // aligned to a page or more, from page 8
	m.put(at+24*page+64-16, 64-16, 4*page-48|flagMapped)  // aligned to 64 bytes
	m.put(at+30*page, 0, 100*page|flagMapped)             // too long
	m.put(at+32*page, 0, 3*page|flagMapped|flagPrevious)  // no mapping
	m.put(at+34*page, 0, 3*page+16|flagMapped)            // no whole pages
	f := &Finder{Heap: &heap.Heap{}, reader: newReader(m, page)}
	got := f.Mapped(context.Background(), []Extent{{at, at + 40*page}})
	want := []Extent{{at + 2*page, at + 7*page}, {at + 8*page, at + 20*page}, {at + 24*page, at + 28*page}}
	if !slices.Equal(got, want) || f.Heap.Mapped.Blocks != 4 || f.Heap.Mapped.Bytes != 21*page {
		t.Errorf("%x, want %x; %+v", got, want, f.Heap.Mapped)
	}
	// With the library's own count, it stops.
	f = &Finder{Heap: &heap.Heap{Counted: true, CountedMapped: 3 * page}, reader: newReader(m, page)}
	if got := f.Mapped(context.Background(), []Extent{{at, at + 40*page}}); len(got) != 1 {
		t.Errorf("%x", got)
	}
}

// Without time, nothing is walked, and all of it is unread.
func TestLate(t *testing.T) {
	m := memory{}
	const many = 1 << 14
	sizes := make([]int, many)
	for i := range sizes {
		sizes[i] = 32
	}
	top := m.blocks(brkStart, sizes...)
	end := top + page
	m.put(end-word, 0)
	m.top(top, end)
	m.put(dataStart+page, 0)
	m.arena(glibc236, mainAt, top, mainAt, end-brkStart)
	f := Find(m, page, data, Extent{brkStart, end})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Walk(ctx)
	if a := f.Heap.Arenas[0]; a.Unread.Bytes == 0 || a.Why == "" || a.Unread.Bytes+a.Live.Bytes != end-brkStart {
		t.Errorf("%+v", a)
	}
}
