package estimate

import (
	"fmt"
	"math"
)

// Difference is the difference of two independent estimates, with the interval that contains the true
// one with 95 %.
type Difference struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// AtLeast means that only Low is known, and AtMost that only High is. With both, nothing is known.
	AtLeast bool `json:"at_least,omitempty"`
	AtMost  bool `json:"at_most,omitempty"`
}

// Between returns the difference from before to after. Where only a lower bound of one is known, there
// is only one bound of the difference.
func Between(before, after Estimate) Difference {
	// The interval follows from those of both (the method of variance estimates recovery), which need
	// not be symmetric.
	d := Difference{Value: after.Value - before.Value, AtLeast: after.AtLeast, AtMost: before.AtLeast}
	d.Low = d.Value - math.Hypot(after.Value-after.Low, before.High-before.Value)
	d.High = d.Value + math.Hypot(after.High-after.Value, before.Value-before.Low)
	if d.AtLeast {
		d.Low = after.Low - before.High
	}
	if d.AtMost {
		d.High = after.High - before.Low
	}
	return d
}

// Clear reports whether the interval excludes 0, and whether what is compared became more.
func (d Difference) Clear() (sure, more bool) {
	switch {
	case d.AtLeast && d.AtMost:
		return false, false
	case d.Low > 0 && !d.AtMost:
		return true, true
	default:
		return d.High < 0 && !d.AtLeast, false
	}
}

// RateText returns the difference of rates with the half of its interval, such as +1,200 ± 300.
func (d Difference) RateText() string {
	half := (d.High - d.Low) / 2
	sure, _ := d.Clear()
	switch {
	case d.AtLeast && d.AtMost:
		return "not known"
	case d.AtLeast:
		return "at least " + signed(d.Low)
	case d.AtMost:
		return "at most " + signed(d.High)
	case d.High <= d.Low:
		return signed(d.Value)
	case d.High-d.Value > 2*(d.Value-d.Low), d.Value-d.Low > 2*(d.High-d.Value), sure != (math.Abs(d.Value) > half):
		return fmt.Sprintf("%s (%s to %s)", signed(d.Value), signed(d.Low), signed(d.High))
	}
	return signed(d.Value) + " ± " + small(half)
}

// signed returns a number with its sign.
func signed(x float64) string {
	switch {
	case x < 0:
		return "-" + small(-x)
	case x > 0:
		return "+" + small(x)
	}
	return "0"
}

// Unseen is the estimate of a group that no window saw, whose blocks have a mean size. It is not
// certain that there are none: it has as many as could come at random and not be seen.
func (w *Windows) Unseen(size float64) Allocated {
	var open, slow float64
	delay := w.delay(0)
	for i := range w.list {
		if x := &w.list[i]; x.number > 0 && x.to > x.from {
			open += x.scale * float64(x.to-x.from)
			slow += x.length * (1 + delay*x.spent.ratio(0))
		}
	}
	e := Estimate{AtLeast: w.any && w.partial()}
	if open > 0 {
		e.High = gamma(0.5, normal) * slow / open
	}
	bytes := e
	bytes.High *= size
	return Allocated{Blocks: e, Bytes: bytes}
}

// Per returns both estimates per second of a time, in ns.
func (a Allocated) Per(ns int64) Allocated { return Allocated{a.Blocks.Per(ns), a.Bytes.Per(ns)} }
