package pagemap

// Huge is the number of pages above which [Rows] leaves out rows that are as the
// one before.
const Huge = 1 << 20

// Rows yields how many bytes of each page of an area are allocated, in rows of
// perRow pages; the last one may be shorter. page is the first page of a row. Of
// an area with more than [Huge] pages, rows are left out that are as the one
// yielded last: then page jumps. So time is bounded by the blocks, however
// large the area says that it is.
//
// blocks are in the order of their addresses and begin in the area; what is
// behind its end is not counted.
func Rows(a *Area, blocks []Block, pageSize uint64, perRow int, yield func(page uint64, bytes []uint64) error) error {
	var (
		pages = a.Pages(pageSize)
		huge  = pages > Huge
		row   = make([]uint64, perRow)
		open  []Block // that reach into the next row
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

// changes returns the page in which a block begins or ends next. The last page
// is always one, since its row may be shorter.
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

// end is the last byte of a block, which has one at least.
func end(b Block) uint64 {
	return b.Address + min(b.Size-1, ^b.Address)
}

// count adds a block to the pages that begin at from and end at last, and says
// whether it reaches beyond.
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
