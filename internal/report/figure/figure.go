// Package figure formats numbers for people and finds round values for axes.
package figure

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Count formats a number with a comma between groups of three digits.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

var binary = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// Bytes formats a size with three significant digits and a binary unit, and
// exactly below 1 KiB: "512 B", "1.5 KiB", "96 KiB", "2.34 GiB".
func Bytes(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v, unit := float64(n), 0
	for v >= 999.5 && unit < len(binary)-1 {
		v, unit = v/1024, unit+1
	}
	return significant(v) + " " + binary[unit]
}

var decimal = []string{"", " k", " M", " G", " T", " P", " E"}

// Short formats a number with three significant digits and k, M, G …, and
// exactly below 1000.
func Short(n uint64) string {
	if n < 1000 {
		return strconv.FormatUint(n, 10)
	}
	v, unit := float64(n), 0
	for v >= 999.5 && unit < len(decimal)-1 {
		v, unit = v/1000, unit+1
	}
	return significant(v) + decimal[unit]
}

// Date returns a time in nanoseconds since 1970 as a date and a time of day, in UTC.
func Date(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }

// Seconds formats nanoseconds with three significant digits and a unit.
func Seconds(ns uint64) string {
	v := float64(ns)
	for _, unit := range []string{" ns", " µs", " ms"} {
		if v < 999.5 {
			return significant(v) + unit
		}
		v /= 1000
	}
	return significant(v) + " s"
}

// Percent formats a fraction of one as a percentage. Fractions that would be
// rounded to 0 or 100 % are "<0.1 %" and ">99.9 %".
func Percent(part float64) string {
	switch p := 100 * part; {
	case p > 0 && p < 0.1:
		return "<0.1 %"
	case p < 100 && p > 99.9:
		return ">99.9 %"
	default:
		return significant(p) + " %"
	}
}

// significant formats a number with three significant digits, without trailing
// zeros.
func significant(v float64) string {
	digits := 2
	switch {
	case v >= 99.95:
		digits = 0
	case v >= 9.995:
		digits = 1
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Ticks returns about n round values from 0 to highest, each 1, 2 or 5 times a
// power of ten apart.
func Ticks(highest uint64, n int) []uint64 {
	least := float64(highest) / float64(max(1, n))
	power := math.Pow(10, math.Floor(math.Log10(max(1, least))))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least {
			step = m * power
			break
		}
	}
	return every(uint64(step), highest)
}

// ByteTicks returns about n round values from 0 to highest, a power of two apart.
func ByteTicks(highest uint64, n int) []uint64 {
	step := uint64(1)
	for step < 1<<62 && step < highest/uint64(max(1, n)) {
		step *= 2
	}
	return every(step, highest)
}

func every(step, highest uint64) []uint64 {
	step = max(1, step)
	out := []uint64{0}
	for v := step; v <= highest && v >= step; v += step {
		out = append(out, v)
	}
	return out
}
