package estimate

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Text returns the value with the half of its interval, such as 1,200,000 ± 40,000. If only a
// lower bound is known, it returns that.
func (e Estimate) Text() string {
	if !e.AtLeast && e.High-e.Low < 1 {
		return grouped(e.Value)
	}
	return e.text(grouped)
}

// text returns the value with its interval, as number writes numbers.
func (e Estimate) text(number func(float64) string) string {
	switch {
	case e.AtLeast:
		return "at least " + number(e.Low)
	case e.High-e.Value > 2*(e.Value-e.Low):
		return fmt.Sprintf("%s (%s to %s)", number(e.Value), number(e.Low), number(e.High))
	}
	return number(e.Value) + " ± " + number((e.High-e.Low)/2)
}

// Per returns the estimate per second of a time, in ns. It is 0 if the time is.
func (e Estimate) Per(ns int64) Estimate {
	if ns <= 0 {
		return Estimate{}
	}
	s := time.Duration(ns).Seconds()
	return Estimate{Value: e.Value / s, Error: e.Error / s, Low: e.Low / s, High: e.High / s, AtLeast: e.AtLeast}
}

// RateText is Text with fractions of small numbers, for a result of Per.
func (e Estimate) RateText() string {
	if !e.AtLeast && e.High <= e.Low {
		return small(e.Value)
	}
	return e.text(small)
}

// small returns a number with at least two digits.
func small(x float64) string {
	if x == 0 || x >= 100 {
		return grouped(x)
	}
	digits := max(0, 1-int(math.Floor(math.Log10(x))))
	return strconv.FormatFloat(x, 'f', min(digits, 9), 64)
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
