package trend

import (
	"math"
	"slices"
)

// slope returns the median of the slopes between all pairs of points, and half
// the width of its confidence interval of 95 %, after Theil and Sen. Single
// outliers do not change it. It is 0 with fewer than two points.
func slope(x, y []float64) (median, half float64) {
	n := len(x)
	if n < 2 {
		return 0, 0
	}
	slopes := make([]float64, 0, n*(n-1)/2)
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
	slices.Sort(slopes)
	all := float64(len(slopes))
	// The variance of Kendall's statistic.
	width := 1.96 * math.Sqrt(float64(n*(n-1)*(2*n+5))/18)
	low := slopes[max(0, int((all-width)/2))]
	high := slopes[min(len(slopes)-1, int((all+width)/2))]
	m := slopes[len(slopes)/2]
	if len(slopes)%2 == 0 {
		m = (m + slopes[len(slopes)/2-1]) / 2
	}
	return m, (high - low) / 2
}
