package estimate

import "math"

// normal is the 97.5th percentile of the normal distribution.
const normal = 1.959964

// student returns the 97.5th percentile of Student's distribution with n degrees of
// freedom, to 1 % from three on (expansion of Cornish and Fisher).
func student(n float64) float64 {
	const z = normal
	switch {
	case n < 1.5:
		return 12.7
	case n < 2.5:
		return 4.3
	}
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*n*n*n)
}

// interval returns the interval of 95 % of a sum with a variance. It is that of as many
// calls as have the same relative error, which come at random (a gamma distribution, as
// Jeffreys' prior makes it): so it is not symmetric if there were few, and never negative.
func interval(sum, variance float64) (low, high float64) {
	calls := sum * sum / variance
	each := variance / sum
	return each * gamma(calls+0.5, -normal), each * gamma(calls+0.5, normal)
}

// gamma returns the quantile of the gamma distribution with a shape, at the quantile z of
// the normal distribution (Wilson and Hilferty's approximation).
func gamma(shape, z float64) float64 {
	x := max(0, 1-1/(9*shape)+z/(3*math.Sqrt(shape)))
	return shape * x * x * x
}
