package live

import "iter"

// Values stores values under numbers that do not change: one for each live
// block, if they do not fit into Entry.Value, which then holds the number; or
// one for each of anything else of which there are many. It grows in steps, so
// that growth needs little memory beyond that for the values. The zero Values is
// empty.
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
	n, at := s.New()
	*at = v
	return n
}

// New stores a zero value and returns it with its number. It is valid until the
// next Add or New.
func (s *Values[T]) New() (uint64, *T) {
	if last := len(s.vacant) - 1; last >= 0 {
		n := uint64(s.vacant[last])
		s.vacant = s.vacant[:last]
		return n, s.At(n)
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
	var none T
	chunk := append(s.chunks[last], none)
	s.chunks[last] = chunk
	return uint64(last)<<chunkBits + uint64(len(chunk)-1), &chunk[len(chunk)-1]
}

// At returns the value with a number. It is valid until the next Add, New, Take
// or Drop.
func (s *Values[T]) At(n uint64) *T { return &s.chunks[n>>chunkBits][n&(chunkSize-1)] }

// Take removes and returns the value with a number. The number may be reused.
func (s *Values[T]) Take(n uint64) T {
	v := *s.At(n)
	s.Drop(n)
	return v
}

// Drop removes the value with a number. The number may be reused.
func (s *Values[T]) Drop(n uint64) {
	var none T
	*s.At(n) = none
	s.vacant = append(s.vacant, uint32(n))
}

// Used returns the number of values.
func (s *Values[T]) Used() int { return s.Len() - len(s.vacant) }

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
