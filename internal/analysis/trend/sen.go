package trend

import (
	"math"
	"slices"
)

// mostSlopes is the number of pairs of slots.
const mostSlopes = maxSlots * (maxSlots - 1) / 2

// slope returns the median of the slopes between all pairs of at most maxSlots
// points, and half the width of its confidence interval of 95 %, after Theil and
// Sen. Single outliers do not change it. It is 0 with fewer than two points.
func slope(x, y []float64) (median, half float64) {
	n := len(x)
	var room [mostSlopes]float64
	slopes := room[:0]
	for i := range n {
		for j := range i {
			if x[i] > x[j] {
				slopes = append(slopes, (y[i]-y[j])/(x[i]-x[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0
	}
	var s selector
	s.take(slopes)
	all := float64(len(slopes))
	// The variance of Kendall's statistic.
	width := 1.96 * math.Sqrt(float64(n*(n-1)*(2*n+5))/18)
	low := s.at(max(0, int((all-width)/2)))
	high := s.at(min(len(slopes)-1, int((all+width)/2)))
	m := s.at(len(slopes) / 2)
	if len(slopes)%2 == 0 {
		m = (m + s.at(len(slopes)/2-1)) / 2
	}
	return m, (high - low) / 2
}

// buckets is how many intervals of equal width a selector divides values into.
const buckets = 128

// selector finds some of the values of a list that would be at given places if it
// were sorted, which takes less time than sorting it. The values are divided into
// buckets, and a bucket is sorted when one of its values is asked for.
type selector struct {
	values [mostSlopes]float64 // by bucket
	starts [buckets + 1]uint16 // of the buckets in values
	sorted [buckets]bool
}

// take takes at most mostSlopes values, none of which is NaN.
func (s *selector) take(values []float64) {
	least, most := values[0], values[0]
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	scale := (buckets - 1) / (most - least)
	if math.IsInf(scale, 0) || math.IsInf(most-least, 0) {
		scale = 0 // all in one bucket
	}
	var bucket [mostSlopes]uint8
	for i, v := range values {
		b := uint8((v - least) * scale)
		bucket[i] = b
		s.starts[b+1]++
	}
	for i := range buckets {
		s.starts[i+1] += s.starts[i]
	}
	next := s.starts
	for i, v := range values {
		at := &next[bucket[i]]
		s.values[*at] = v
		*at++
	}
}

// at returns the value that would be at a place.
func (s *selector) at(place int) float64 {
	b, _ := slices.BinarySearch(s.starts[1:], uint16(place)+1)
	if !s.sorted[b] {
		slices.Sort(s.values[s.starts[b]:s.starts[b+1]])
		s.sorted[b] = true
	}
	return s.values[place]
}
