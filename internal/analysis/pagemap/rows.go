package pagemap

// Huge is the number of pages above which [Rows] leaves out repeated rows.
const Huge = 1 << 20

// Rows calls yield with the number of allocated bytes of each page of an area,
// in rows of perRow pages; the last row may be shorter. page is the first page
// of a row. In an area with more than [Huge] pages, Rows leaves out rows that
// equal the last one, so page may jump. Its time is thus bounded by the blocks,
// however large an area a damaged file claims.
//
// blocks must be in order of address and begin in the area. Parts after its end
// are not counted.
func Rows(a *Area, blocks []Block, pageSize uint64, perRow int, yield func(page uint64, bytes []uint64) error) error {
	var (
		pages = a.Pages(pageSize)
		huge  = pages > Huge
		row   = make([]uint64, perRow)
		open  []Block // blocks that reach into the next row
	)
	for page := uint64(0); page < pages; {
		n := min(uint64(perRow), pages-page)
		from := a.Start + page*pageSize
		last := from + n*pageSize - 1
		clear(row)
		quiet := len(blocks) == 0 || blocks[0].Address > last
		for len(blocks) > 0 && blocks[0].Address <= last {
			open = append(open, blocks[0])
			blocks = blocks[1:]
		}
		kept := open[:0]
		for _, b := range open {
			if count(row[:n], b, from, last, pageSize) {
				kept = append(kept, b)
			}
		}
		quiet = quiet && len(kept) == len(open)
		open = kept
		if err := yield(page, row[:n]); err != nil {
			return err
		}
		page += n
		if huge && quiet {
			page = max(page, changes(a, blocks, open, pageSize, pages)/uint64(perRow)*uint64(perRow))
		}
	}
	return nil
}

// changes returns the next page in which a block begins or ends. The last page
// always counts, because its row may be shorter.
func changes(a *Area, blocks, open []Block, pageSize, pages uint64) uint64 {
	next := pages - 1
	if len(blocks) > 0 {
		next = min(next, (blocks[0].Address-a.Start)/pageSize)
	}
	for _, b := range open {
		next = min(next, (end(b)-a.Start)/pageSize)
	}
	return next
}

// end returns the address of the last byte of a block, whose size must not be
// 0.
func end(b Block) uint64 {
	return b.Address + min(b.Size-1, ^b.Address)
}

// count adds a block to the row of pages from address from to last. It reports
// whether the block reaches beyond the row.
func count(row []uint64, b Block, from, last, pageSize uint64) bool {
	if b.Size == 0 {
		return false
	}
	stop := min(end(b), last)
	for at := max(b.Address, from); at <= stop; {
		i := (at - from) / pageSize
		page := from + i*pageSize + (pageSize - 1) // its last byte
		row[i] += min(stop, page) - at + 1
		if page >= stop {
			break
		}
		at = page + 1
	}
	return end(b) > last
}
