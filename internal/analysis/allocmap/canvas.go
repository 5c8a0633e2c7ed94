package allocmap

import "fmt"

// canvas draws on a Drawing.
type canvas struct {
	*Drawing
	limit uint64 // pages
}

// page returns the page of an address. ok is false if the page is not on the
// map.
func (c *canvas) page(address uint64) (page uint64, ok bool) {
	page = (address - c.Base) / c.PageSize
	return page, address >= c.Base && page < c.limit
}

// grow extends the map up to and including a page.
func (c *canvas) grow(page uint64) {
	for uint64(len(c.Cells)) <= page {
		c.Cells = append(c.Cells, make([]byte, max(PerRow, page+1-uint64(len(c.Cells))))...)
	}
}

// block draws a block with its header and the byte after its end. It returns
// false if part of that is not on the map.
func (c *canvas) block(b block) bool {
	first, ok := c.page(b.address - min(b.address, header))
	end := b.address + b.size
	last, ok2 := c.page(end)
	if !ok || !ok2 || end < b.address {
		return false
	}
	c.grow(last)
	for i := first; i <= last; i++ {
		c.Cells[i] = b.mark
	}
	return true
}

// used returns the last page that contains a block, and the number of such
// pages.
func (c *canvas) used() (last uint64, n int) {
	for i, mark := range c.Cells {
		if mark != 0 {
			last = uint64(i)
			n++
		}
	}
	return last, n
}

// marks draws the marks of the heap's bounds on pages without blocks and cuts
// the map after the last row in use.
func (c *canvas) marks(h *Heap, legacy bool) {
	top, n := c.used()
	c.Pages = n
	known := legacy // whether to draw a mark for the top
	if h.Top != 0 {
		if page, ok := c.page(h.Top); ok && page > top {
			top, known = page, true
		} else if !ok || page < top || legacy {
			c.beyond("top", h.Top)
		} else {
			known = legacy
		}
	}
	c.grow((top/PerRow+1)*PerRow - 1)
	if known {
		c.Cells[top] = 'T'
	}
	if h.Top != 0 && h.KeepCost != 0 {
		c.mark("top that it could be cut to", h.Top-min(h.KeepCost, h.Top), top, '|', legacy)
	}
	if h.High != 0 {
		c.mark("highest address", h.High, top, '>', legacy)
	}
	if h.Low != 0 && !legacy {
		page, ok := c.page(h.Low)
		switch {
		case !ok || page > top:
			c.beyond("lowest address", h.Low)
		case c.Cells[page] == 0:
			c.Cells[page] = '<'
		}
	}
	if legacy {
		_, c.Pages = c.used()
	}
	c.Cells = c.Cells[:(top/PerRow+1)*PerRow]
}

// mark draws a mark in the first free page between address and top. If there is
// none, it draws nothing, while the original draws the mark over that of the
// top. The original also draws no mark in page 0.
func (c *canvas) mark(what string, address, top uint64, mark byte, legacy bool) {
	page, ok := c.page(address)
	if !ok || page > top {
		c.beyond(what, address)
		return
	}
	if legacy && page == 0 {
		return
	}
	for ; page < top; page++ {
		switch c.Cells[page] {
		case 0:
			c.Cells[page] = mark
			return
		case '|', 'T':
			return
		}
	}
	if legacy {
		c.Cells[top] = mark
	}
}

// beyond records that a mark lies outside of the map.
func (c *canvas) beyond(what string, address uint64) {
	c.Beyond = append(c.Beyond, fmt.Sprintf("the %s of the heap, %#x, is not above the base or below the blocks of the map", what, address))
}
