package glibcheap

import (
	"errors"
	"fmt"
	"slices"
)

// Offsets of fields from the first bin, in bytes (struct malloc_state). They are the same in all
// versions with 64-bit pointers.
const (
	bins       = 127              // pairs of links
	topField   = 2 * word         // before it
	nextField  = bins*2*word + 16 // after the map of bins
	systemMem  = nextField + 3*word
	afterState = nextField + 5*word

	fastBins     = 10
	fastBinsSize = fastBins * word // before top
)

// binOffsets are the offsets of the first bin in struct malloc_state: since glibc 2.27, before,
// and without fast bins.
var binOffsets = []uint64{112, 104, 32, 24}

// heapMax is the largest size of a heap of an arena other than the main one, and the alignment
// of its address (HEAP_MAX_SIZE).
const heapMax = 64 << 20

// Limits against processes that mislead.
const (
	maxArenas = 1 << 14 // the library makes eight per processor
	maxHeaps  = 1 << 16 // of all arenas
	maxData   = 64 << 20
	maxTries  = 1 << 16 // places that are checked for bins, and arenas that are read
)

// Reasons why there is no heap.
var (
	errNoArena = errors.New("the main arena was not found: malloc is unused, or its version is not supported")
	errHeap    = errors.New("an arena is inconsistent: it changed while it was read, or its version is not supported")
)

// arena is where the parts of an arena are.
type arena struct {
	at   uint64 // address of struct malloc_state
	main bool
	bins uint64 // address of the first bin
	top  uint64
	next uint64
	// system is the number of bytes that the arena got from the kernel.
	system uint64
	fast   []uint64 // heads of the fast bins
}

// findMain looks for the main arena in writable data of the library. It returns the arenas, the
// main one first.
func (r *reader) findMain(data []Extent) ([]arena, error) {
	for _, e := range data {
		end := min(e.End, e.Start+maxData)
		for at := e.Start; at+2*word <= end; at += word {
			a, err := r.word(at)
			if err != nil {
				at = at&^(r.page-1) + r.page - word // the next page
				continue
			}
			if a != at-2*word {
				continue
			}
			if b, err := r.word(at + word); err != nil || b != a {
				continue
			}
			if found := r.arenasAround(at, e); found != nil {
				return found, nil
			}
			if r.tries > maxTries {
				return nil, errNoArena
			}
		}
	}
	return nil, errNoArena
}

// arenasAround returns all arenas if the pair of links at an address is an empty bin of the main
// one.
func (r *reader) arenasAround(at uint64, within Extent) []arena {
	for k := range uint64(bins) {
		first := at - k*2*word
		if r.tries++; first < within.Start || first > at || r.tries > maxTries {
			return nil
		}
		if !r.areBins(first) {
			continue
		}
		for _, offset := range binOffsets {
			if found, err := r.ring(first-offset, offset); err == nil {
				return found
			}
		}
	}
	return nil
}

// areBins reports whether pairs of links can be the bins of an arena: each points to itself or
// to blocks.
func (r *reader) areBins(first uint64) bool {
	for i := range uint64(bins) {
		at := first + i*2*word
		var pair [2]uint64
		if r.words(at, pair[:]) != nil {
			return false
		}
		head := at - 2*word
		empty := pair[0] == head && pair[1] == head
		if !empty && (pair[0]%16 != 0 || pair[1]%16 != 0 || pair[0] < r.page || pair[1] < r.page) {
			return false
		}
	}
	return true
}

// ring returns the arenas of the ring that begins with the main one.
func (r *reader) ring(main, offset uint64) ([]arena, error) {
	var all []arena
	seen := map[uint64]bool{}
	for at := main; ; {
		if r.tries++; seen[at] || len(all) == maxArenas || r.tries > maxTries {
			return nil, errHeap
		}
		seen[at] = true
		a, err := r.arena(at, offset, at == main)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
		if at = a.next; at == main {
			return all, nil
		}
	}
}

// arena reads the structure of an arena.
func (r *reader) arena(at, offset uint64, main bool) (arena, error) {
	first := at + offset
	a := arena{at: at, main: main, bins: first}
	if at%word != 0 {
		return a, errHeap
	}
	if !main {
		heap := at &^ (heapMax - 1)
		owner, err := r.word(heap)
		if err != nil || owner != at || at-heap > maxHead {
			return a, errHeap
		}
	}
	var most uint64
	for _, f := range []struct {
		at uint64
		to *uint64
	}{{first - topField, &a.top}, {first + nextField, &a.next}, {first + systemMem, &a.system}, {first + systemMem + word, &most}} {
		var err error
		if *f.to, err = r.word(f.at); err != nil {
			return a, err
		}
	}
	// The main arena may begin at any address of the program break, and ends with a page.
	if a.system > most || !main && a.system%16 != 0 || a.top%16 != 0 {
		return a, errHeap
	}
	if offset >= fastBinsSize {
		a.fast = make([]uint64, fastBins)
		if err := r.words(first-topField-fastBinsSize, a.fast); err != nil {
			return a, err
		}
	}
	return a, nil
}

// maxHead is the most bytes of struct heap_info: 32 until glibc 2.34, then 48.
const maxHead = 256

// segment is a piece of memory of an arena, a heap in the library's terms.
type segment struct {
	Extent
	first uint64 // address of the first block
}

// heapsOf returns the heaps of an arena that is not the main one, the oldest first.
func (r *reader) heapsOf(a *arena, offset uint64) ([]segment, error) {
	var all []segment
	head := a.at - a.at&^(heapMax-1)
	for at := a.top &^ (heapMax - 1); at != 0; {
		var info [3]uint64 // owner, previous heap, size
		if err := r.words(at, info[:]); err != nil {
			return nil, err
		}
		if info[0] != a.at || info[2] > heapMax || info[2] < head || info[1]%heapMax != 0 || r.heaps == maxHeaps {
			return nil, fmt.Errorf("heap at %#x: %w", at, errHeap)
		}
		h := segment{Extent: Extent{at, at + info[2]}, first: at + head}
		if at+head == a.at {
			h.first = (a.at + offset + afterState + 15) &^ 15
		}
		if slices.ContainsFunc(all[max(0, len(all)-1):], func(o segment) bool { return o.Start == at }) {
			return nil, errHeap
		}
		all = append(all, h)
		r.heaps++
		at = info[1]
	}
	slices.Reverse(all)
	if len(all) == 0 || all[0].Start != a.at&^(heapMax-1) {
		return nil, errHeap
	}
	return all, nil
}
