package estimate

import (
	"fmt"
	"strconv"
)

// Text returns the value with the half of its interval, such as 1,200,000 ± 40,000. If only a
// lower bound is known, it returns that.
func (e Estimate) Text() string {
	switch {
	case e.AtLeast:
		return "at least " + grouped(e.Low)
	case e.High-e.Low < 1:
		return grouped(e.Value)
	case e.High-e.Value > 2*(e.Value-e.Low):
		return fmt.Sprintf("%s (%s to %s)", grouped(e.Value), grouped(e.Low), grouped(e.High))
	}
	return grouped(e.Value) + " ± " + grouped((e.High-e.Low)/2)
}

// grouped returns a number, rounded to three digits unless it is small, in groups of three.
func grouped(x float64) string {
	unit := 1.0
	for x/unit >= 10000 {
		unit *= 10
	}
	digits := strconv.FormatFloat(float64(int64(x/unit+0.5))*unit, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
