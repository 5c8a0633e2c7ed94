package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The places that a selector finds are those of the sorted values, however these are spread.
func TestSelector(t *testing.T) {
	spreads := map[string]func(*rand.Rand) float64{
		"even":        func(r *rand.Rand) float64 { return r.Float64() },
		"few":         func(r *rand.Rand) float64 { return float64(r.IntN(3)) },
		"one":         func(*rand.Rand) float64 { return 7 },
		"exponential": func(r *rand.Rand) float64 { return math.Ldexp(r.Float64(), r.IntN(200)) },
		"signs":       func(r *rand.Rand) float64 { return math.Ldexp(r.Float64()-0.5, r.IntN(60)) },
		"close":       func(r *rand.Rand) float64 { return 1 + float64(r.IntN(4))*0x1p-52 },
		"smallest":    func(r *rand.Rand) float64 { return float64(r.IntN(9)) * math.SmallestNonzeroFloat64 },
		"largest":     func(r *rand.Rand) float64 { return (r.Float64() - 0.5) * 2 * math.MaxFloat64 },
	}
	for name, value := range spreads {
		for seed := range uint64(50) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			values := make([]float64, 1+rnd.IntN(mostSlopes))
			for i := range values {
				values[i] = value(rnd)
			}
			want := slices.Sorted(slices.Values(values))
			var s selector
			s.take(values)
			for range 10 {
				if n := rnd.IntN(len(want)); s.at(n) != want[n] {
					t.Fatalf("%s, seed %d: place %d of %d: %g, want %g", name, seed, n, len(want), s.at(n), want[n])
				}
			}
		}
	}
}

// Rates that are kept from the last time are those that are computed anew.
func TestKeptRates(t *testing.T) {
	kept := 0
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var h History
		f := Figures{}
		var began []int64
		pace := int64(1+rnd.IntN(1000)) * 1e6
		for range 2000 {
			f.Now += rnd.Int64N(pace)
			if len(began) > 0 && rnd.IntN(20) == 0 { // rarely, so that it still grows
				i := rnd.IntN(len(began))
				h.Ended(f.Now, began[i], 8)
				f.Freed++
				began = slices.Delete(began, i, i+1)
			} else {
				h.Began(f.Now, uint64(8))
				f.Allocated++
				began = append(began, f.Now)
			}
			if rnd.IntN(5) > 0 {
				continue
			}
			if h.rates != nil {
				kept++
			}
			got := Judge(h.At(f.Now), &f)
			anew := h
			anew.rates = nil
			if want := Judge(anew.At(f.Now), &f); got != want {
				t.Fatalf("seed %d, %d ns: %+v, want %+v", seed, f.Now, got, want)
			}
		}
	}
	if kept == 0 {
		t.Error("no rates were kept")
	}
}
