package pagemap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Page is the kernel's state of a page.
type Page struct {
	Info  Info
	Flags uint64 // from /proc/kpageflags; 0 for a page that is not in memory
	Count uint32 // how many times it is mapped, from /proc/kpagecount
}

// Info is the pagemap module's own state of a page.
type Info uint32

// The bits of Info.
const (
	Swapped  Info = 1 << iota // swapped out to disk
	InMemory                  // in memory
	Zero                      // all its bytes are 0; only private writable areas are checked
)

// Pages is a pageflags attachment: for each area a header with its bounds and
// the number of bytes that follow, then a record for each page. These are
// structs of the traced machine, so their layout depends on it.
type Pages struct {
	// PageSize is the page size of the traced machine, in bytes; 0 if there is
	// no area.
	PageSize uint64

	r      io.ReaderAt
	layout layout
	at     map[bounds]int64 // offset of each area's records
	buf    []byte
	bufAt  int64 // offset of buf
}

type bounds struct{ start, end uint64 }

// layout is the layout of the structs.
type layout struct {
	order binary.ByteOrder
	wide  bool // addresses take 8 bytes
	page  int  // length of a record, in bytes
}

// head returns the length of the header of an area, in bytes.
func (l *layout) head() int64 {
	if l.wide {
		return 24
	}
	return 12
}

// layouts returns the layouts of x86-64 and arm64, of i386 (which aligns 64-bit
// numbers to 4 bytes), and of arm, in both byte orders.
func layouts() (all []layout) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		all = append(all, layout{order, true, 24}, layout{order, false, 16}, layout{order, false, 24})
	}
	return all
}

// MaxPageFlags is the largest size of a pageflags attachment, in bytes. That
// describes 700 GB of memory.
const MaxPageFlags = 4 << 30

// ErrLayout reports that a file is not a pageflags attachment.
var ErrLayout = errors.New("not written by the pagemap module")

// OpenPages detects the layout of a pageflags attachment of size bytes and
// finds its areas. Pages keeps reading from r. A truncated area and anything
// after the last valid area are ignored.
func OpenPages(r io.ReaderAt, size int64) (*Pages, error) {
	if size > MaxPageFlags {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", size, int64(MaxPageFlags))
	}
	var best *Pages
	most := int64(-1)
	for _, l := range layouts() {
		p := &Pages{r: r, layout: l, at: make(map[bounds]int64)}
		end, err := p.index(size)
		if err != nil {
			return nil, err
		}
		if len(p.at) > 0 && end > most {
			best, most = p, end
		}
	}
	if best == nil {
		return nil, ErrLayout
	}
	return best, nil
}

// index finds the areas and returns the offset where they end.
func (p *Pages) index(size int64) (end int64, err error) {
	l := &p.layout
	for at := int64(0); at+l.head() <= size; {
		b, err := p.bytes(at, int(l.head()))
		if err != nil {
			return 0, err
		}
		var area bounds
		var length int64
		if l.wide {
			area = bounds{l.order.Uint64(b), l.order.Uint64(b[8:])}
			length = int64(l.order.Uint32(b[16:]))
		} else {
			area = bounds{uint64(l.order.Uint32(b)), uint64(l.order.Uint32(b[4:]))}
			length = int64(l.order.Uint32(b[8:]))
		}
		page := pageSize(area, length, int64(l.page))
		if page == 0 || p.PageSize != 0 && page != p.PageSize || len(p.at) == maxAreas {
			return at, nil
		}
		p.PageSize = page
		at += l.head()
		if at+length > size {
			return at, nil
		}
		if _, again := p.at[area]; !again {
			p.at[area] = at
		}
		at += length
	}
	return size, nil
}

// pageSize returns the page size of an area whose records take length bytes, or
// 0 if they do not fit the area.
func pageSize(area bounds, length, record int64) uint64 {
	if area.end <= area.start || length <= 0 || length%record != 0 {
		return 0
	}
	n := uint64(length / record)
	size := (area.end - area.start) / n
	if size*n != area.end-area.start || size < 1<<10 || size > 1<<20 || size&(size-1) != 0 {
		return 0
	}
	return size
}

const pagesBuffer = 64 << 10

// bytes returns n bytes of the attachment, at most pagesBuffer. They are valid
// until the next call.
func (p *Pages) bytes(at int64, n int) ([]byte, error) {
	if from := at - p.bufAt; from >= 0 && from+int64(n) <= int64(len(p.buf)) {
		return p.buf[from : from+int64(n)], nil
	}
	if p.buf == nil {
		p.buf = make([]byte, pagesBuffer)
	}
	got, err := p.r.ReadAt(p.buf[:cap(p.buf)], at)
	p.buf, p.bufAt = p.buf[:got], at
	if got < n {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return p.buf[:n], nil
}

// Has reports whether there are records of an area.
func (p *Pages) Has(a *Area) bool {
	_, ok := p.at[bounds{a.Start, a.End}]
	return ok
}

// Page returns the record of page n of an area, counted from 0. ok is false if
// there is none.
func (p *Pages) Page(a *Area, n uint64) (page Page, ok bool, err error) {
	at, ok := p.at[bounds{a.Start, a.End}]
	if !ok || n >= a.Pages(p.PageSize) {
		return page, false, nil
	}
	l := &p.layout
	b, err := p.bytes(at+int64(n)*int64(l.page), l.page)
	if err != nil {
		return page, false, err
	}
	flags := 8
	if l.page == 16 {
		flags = 4
	}
	return Page{Info(l.order.Uint32(b)), l.order.Uint64(b[flags:]), l.order.Uint32(b[flags+8:])}, true, nil
}

// Dirty reports whether a page was written to: its data are only in memory or
// in swap.
func (p *Page) Dirty() bool {
	return p.Flags&(flagDirty|flagSwapBacked|flagSwapCache) != 0
}
