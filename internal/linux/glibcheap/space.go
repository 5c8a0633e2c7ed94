package glibcheap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Space is the memory of a process.
type Space interface {
	io.ReaderAt
	// Readable reports whether the page at an address can be read without a page fault.
	Readable(addr uint64) bool
	// Resident returns how many bytes of [start, end) are in resident pages.
	Resident(start, end uint64) uint64
}

// Extent is the addresses [Start, End).
type Extent struct{ Start, End uint64 }

// Has reports whether an address is in e.
func (e Extent) Has(addr uint64) bool { return addr >= e.Start && addr < e.End }

// errUnreadable reports memory that is not resident, or that is not mapped any more.
var errUnreadable = errors.New("memory that is not resident")

const word = 8 // bytes of a pointer

// reader reads words of a space through a window.
type reader struct {
	space  Space
	page   uint64 // bytes
	window []byte // what was read
	at     uint64 // address of window
	buffer []byte
	tries  int // see maxTries
	heaps  int // see maxHeaps
}

// Sizes of the window in pages. It is large only where memory is read in order.
const (
	fewPages  = 1
	manyPages = 64
)

func newReader(space Space, page uint64) *reader {
	return &reader{space: space, page: page, buffer: make([]byte, manyPages*page)}
}

// word returns the word at an address, which must be a multiple of 8.
func (r *reader) word(addr uint64) (uint64, error) {
	if addr < r.at || addr-r.at+word > uint64(len(r.window)) {
		if err := r.move(addr); err != nil {
			return 0, err
		}
	}
	return binary.LittleEndian.Uint64(r.window[addr-r.at:]), nil
}

// move moves the window so that it begins with the page of an address.
func (r *reader) move(addr uint64) error {
	start := addr &^ (r.page - 1)
	most := uint64(fewPages)
	if start == r.at+uint64(len(r.window)) {
		most = manyPages
	}
	n := uint64(0)
	for n < most && start+(n+1)*r.page > start && r.space.Readable(start+n*r.page) {
		n++
	}
	r.window, r.at = nil, 0
	if n == 0 || addr%word != 0 || start > 1<<63-1 {
		return fmt.Errorf("%w, at %#x", errUnreadable, addr)
	}
	// A part is enough: pages may have gone.
	k, _ := r.space.ReadAt(r.buffer[:n*r.page], int64(start))
	k -= k % int(r.page)
	if k == 0 {
		return fmt.Errorf("%w, at %#x", errUnreadable, addr)
	}
	r.window, r.at = r.buffer[:k], start
	return nil
}

// words reads consecutive words into to.
func (r *reader) words(addr uint64, to []uint64) error {
	for i := range to {
		w, err := r.word(addr + uint64(i)*word)
		if err != nil {
			return err
		}
		to[i] = w
	}
	return nil
}
