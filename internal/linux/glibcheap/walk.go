package glibcheap

import (
	"context"
	"errors"
	"fmt"

	"rtrace-bpf/internal/heap"
)

// Flags in the size of a block.
const (
	flagPrevious = 1 // the block before it is in use
	flagMapped   = 2
	flags        = 7
)

// minBlock is the size of the smallest block, in bytes.
const minBlock = 32

// Reasons why memory of an arena is unread.
var (
	errLate   = errors.New("the time for reading was over")
	errBroken = errors.New("sizes of blocks do not fit together")
)

// walker walks the blocks of one arena.
type walker struct {
	*reader
	ctx    context.Context // which ends when there is no time left
	since  uint            // blocks since it was checked
	arena  *heap.Arena
	holes  holes
	caches *caches
}

// late reports whether the time is over. It checks now and then.
func (w *walker) late() bool {
	const often = 1 << 10
	w.since++
	return w.since%often == 0 && w.ctx.Err() != nil
}

// count adds memory to an amount.
func (w *walker) count(to *heap.Amount, start, end uint64) {
	to.Blocks++
	to.Bytes += end - start
	to.Resident += w.space.Resident(start, end)
}

// unread counts memory whose blocks are not known.
func (w *walker) unread(start, end uint64, err error) {
	if start >= end {
		return
	}
	w.count(&w.arena.Unread, start, end)
	if w.arena.Why == "" {
		w.arena.Why = fmt.Sprintf("%v, at %#x", err, start)
	}
}

// walk counts all of a heap. The last block of the arena is at top.
func (w *walker) walk(h segment, top uint64) {
	if h.first > h.Start {
		w.count(&w.arena.Own, h.Start, h.first)
	}
	w.holes.begin()
	p := h.first
	for p < h.End {
		next, err := w.block(p, h.End, top)
		if err == nil {
			p = next
			continue
		}
		resumed := h.End
		if !errors.Is(err, errLate) {
			resumed = w.resume(p+minBlock/2, h.End, top)
		}
		w.unread(p, resumed, err)
		p = resumed
	}
	w.holes.end()
}

// block counts the block at p, and returns the address of the next one.
func (w *walker) block(p, end, top uint64) (uint64, error) {
	if w.late() {
		return 0, errLate
	}
	head, err := w.word(p + word)
	if err != nil {
		return 0, err
	}
	size := head &^ flags
	next := p + size
	switch {
	case p == top:
		if next < p || next > end || size%16 != 0 {
			return 0, errBroken
		}
		w.count(&w.arena.Top, p, next)
		if next < end { // what the kernel has not taken back
			w.count(&w.arena.Own, next, end)
		}
		return end, nil
	case size == 16 && head&flagMapped == 0 && next <= end, size == 0 && end-p <= 2*minBlock:
		// Fences, where a heap ends and the next begins elsewhere.
		next = min(p+16, end)
		w.count(&w.arena.Own, p, next)
		return next, nil
	case !fits(p, head, end):
		return 0, errBroken
	case p < top && next > top:
		return 0, errBroken
	}
	used := true
	if next < end {
		after, err := w.word(next + word)
		if err != nil {
			return 0, err
		}
		used = after&flagPrevious != 0
	}
	resident := w.space.Resident(p, next)
	to := &w.arena.Free
	if used {
		to = &w.arena.Live
		w.holes.live(size, resident)
		w.caches.consider(w, p, size)
	} else {
		w.holes.free(p, size, resident)
	}
	to.Blocks++
	to.Bytes += size
	to.Resident += resident
	return next, nil
}

// fits reports whether a block at p with this size can be in memory that ends at end.
func fits(p, head, end uint64) bool {
	size := head &^ flags
	return size >= minBlock && size%16 == 0 && size <= end-p && head&flagMapped == 0
}

// resume looks for the next block after memory that is no block. It returns its address, or end.
func (w *walker) resume(p, end, top uint64) uint64 {
	for p = (p + 15) &^ 15; p < end; p += 16 {
		if w.late() {
			return end
		}
		if p == top || w.leads(p, end, top) {
			return p
		}
		if !w.space.Readable(p) {
			p = p&^(w.page-1) + w.page - 16
		}
	}
	return end
}

// leads reports whether a chain of blocks that fit together begins at p.
func (w *walker) leads(p, end, top uint64) bool {
	const enough = 16
	for range enough {
		head, err := w.word(p + word)
		if err != nil || !fits(p, head, end) || p < top && p+head&^flags > top {
			return false
		}
		size := head &^ flags
		next := p + size
		if next == top || next == end {
			return true
		}
		var after [2]uint64
		if w.words(next, after[:]) != nil {
			return false
		}
		if after[1]&flagPrevious == 0 && after[0] != size {
			return false
		}
		p = next
	}
	return true
}
