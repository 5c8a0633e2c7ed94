package resident

import (
	"math/rand/v2"
	"testing"
)

// Counts of bytes in resident pages equal a count of byte after byte.
func TestPages(t *testing.T) {
	const size, n, start = 16, 200, 0x10000
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := newPages(start, start+size*n, size)
		entries := make([]uint64, n)
		for i := range entries {
			entries[i] = []uint64{0, entrySwapped, entryPresent | entryExclusive, entryPresent}[r.IntN(4)]
			p.set(uint64(i), entries[i])
		}
		shared := p.others * (seed % 2) // pages that are not exclusive are shared, or the page of zeros
		p.finish(shared)
		counts := func(e uint64) bool {
			return e&entryPresent != 0 && (e&entryExclusive != 0 || shared > 0)
		}
		for range 200 {
			from := start - 50 + r.Uint64N(size*n+100)
			to := from + r.Uint64N(size*70)
			var resident, swapped uint64
			for at := max(from, start); at < min(to, start+size*n); at++ {
				e := entries[(at-start)/size]
				if counts(e) {
					resident++
				}
				if e == entrySwapped {
					swapped++
				}
			}
			if got := p.Resident(from, to); got != resident {
				t.Fatalf("seed %d: %d bytes of [%#x, %#x) are resident, want %d", seed, got, from, to, resident)
			}
			if got := p.SwappedOut(from, to); got != swapped {
				t.Fatalf("seed %d: %d bytes of [%#x, %#x) are swapped out, want %d", seed, got, from, to, swapped)
			}
			next := from
			for next = max(next, start) / size * size; next < start+size*n && entries[(next-start)/size]&entryPresent == 0; {
				next += size
			}
			if got := p.NextReadable(from); got != min(next, start+size*n) {
				t.Fatalf("seed %d: the next page that can be read after %#x is %#x, want %#x", seed, from, got, next)
			}
			if from >= start && from < start+size*n {
				e := entries[(from-start)/size]
				if p.Readable(from) != (e&entryPresent != 0) || p.Swapped(from) != (e == entrySwapped) {
					t.Fatalf("seed %d: page at %#x with entry %#x", seed, from, e)
				}
			}
		}
	}
}
