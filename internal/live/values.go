package live

import "iter"

// Values stores values under numbers that do not change: one for each live
// block, if they do not fit into Entry.Value, which then holds the number; or
// one for each of anything else of which there are many. It grows in steps, so that growth needs little memory beyond that for the
// values. The zero Values is empty.
type Values[T any] struct {
	chunks [][]T // all but the last are full
	vacant []uint32
}

const (
	chunkBits = 12
	chunkSize = 1 << chunkBits
)

// Add stores a value and returns its number.
func (s *Values[T]) Add(v T) uint64 {
	if last := len(s.vacant) - 1; last >= 0 {
		n := uint64(s.vacant[last])
		s.vacant = s.vacant[:last]
		*s.At(n) = v
		return n
	}
	last := len(s.chunks) - 1
	if last < 0 || len(s.chunks[last]) == chunkSize {
		var chunk []T // the first one grows with its use
		if last >= 0 {
			chunk = make([]T, 0, chunkSize)
		}
		s.chunks = append(s.chunks, chunk)
		last++
	}
	s.chunks[last] = append(s.chunks[last], v)
	return uint64(last)<<chunkBits + uint64(len(s.chunks[last])-1)
}

// At returns the value with a number. It is valid until the next Add or Take.
func (s *Values[T]) At(n uint64) *T { return &s.chunks[n>>chunkBits][n&(chunkSize-1)] }

// Take removes and returns the value with a number. The number may be reused.
func (s *Values[T]) Take(n uint64) T {
	var none T
	at := s.At(n)
	v := *at
	*at = none
	s.vacant = append(s.vacant, uint32(n))
	return v
}

// Len returns the number of values, including numbers that are not in use.
func (s *Values[T]) Len() int {
	if len(s.chunks) == 0 {
		return 0
	}
	return (len(s.chunks)-1)<<chunkBits + len(s.chunks[len(s.chunks)-1])
}

// All yields all values in the order of their numbers, and a zero T for each
// number that is not in use. The Values must not change during the iteration.
func (s *Values[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, chunk := range s.chunks {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}
