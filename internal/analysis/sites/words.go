package sites

import "slices"

// words stores runs of words under numbers that do not change. It grows in chunks, so that
// growth copies nothing and needs no memory beyond that for the words. The zero words is empty.
type words struct {
	chunks [][]uint64
	n      int // words in use
}

const (
	chunkBits  = 14
	chunkWords = 1 << chunkBits
	maxChunks  = 1<<(32-chunkBits) - 1 // 1 more than the last number fits, too
)

// full reports whether no more runs can be added.
func (w *words) full() bool { return len(w.chunks) >= maxChunks }

// add adds a run of n words and returns it with its number.
func (w *words) add(n int) (at uint32, run []uint64) {
	last := len(w.chunks) - 1
	if last < 0 || len(w.chunks[last]) > 0 && len(w.chunks[last])+n > chunkWords {
		var chunk []uint64 // the first one grows with its use
		if last >= 0 {
			chunk = make([]uint64, 0, max(n, chunkWords))
		}
		w.chunks = append(w.chunks, chunk)
		last++
	}
	chunk := w.chunks[last]
	from := len(chunk)
	chunk = slices.Grow(chunk, n)[:from+n]
	w.chunks[last] = chunk
	w.n += n
	return uint32(last<<chunkBits + from), chunk[from:]
}

// from returns the words from the start of a run on, which may include later runs.
func (w *words) from(at uint32) []uint64 { return w.chunks[at>>chunkBits][at&(chunkWords-1):] }
