package glibcheap

// parameters is the library's own count of blocks with mappings of their own, and the address of
// the first block of the main arena (struct malloc_par).
type parameters struct{ blocks, bytes, first uint64 }

// findParameters looks for the parameters of malloc in writable data of the library: the start
// of the heap, after the bytes in mappings and the most there ever were, after the number of
// mappings and the most that are allowed. The offset of the latter changed in glibc 2.35.
func (r *reader) findParameters(data []Extent, brk Extent) (parameters, bool) {
	const (
		near    = 64 << 10 // the heap of a static program begins after other data
		allowed = 65536    // mappings: the default (M_MMAP_MAX)
	)
	for _, e := range data {
		end := min(e.End, e.Start+maxData)
		for at := e.Start + 6*word; at+word <= end; at += word {
			base, err := r.word(at)
			if err != nil {
				at = at&^(r.page-1) + r.page - word
				continue
			}
			if base < brk.Start || base >= brk.Start+near {
				continue
			}
			var before [5]uint64 // the counts, with padding; bytes; most bytes
			if r.words(at-5*word, before[:]) != nil {
				continue
			}
			bytes, most := before[3], before[4]
			if bytes%r.page != 0 || most%r.page != 0 || bytes > most {
				continue
			}
			// Counts are of 4 bytes: mappings, allowed, most ever, a flag, and since 2.35 padding.
			counts := []uint64{before[0] & (1<<32 - 1), before[0] >> 32, before[1] & (1<<32 - 1), before[1] >> 32, before[2] & (1<<32 - 1)}
			for _, i := range []int{2, 1} { // without and with padding
				if counts[i+1] == allowed && counts[i] <= counts[i+2] {
					return parameters{blocks: counts[i], bytes: bytes, first: (base + 15) &^ 15}, true
				}
			}
		}
	}
	return parameters{}, false
}
