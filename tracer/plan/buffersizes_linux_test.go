package plan

import "testing"

// The rings of several tracers fit the memory that one tracer may have, or the tracers are
// refused.
func TestSharesStayInTheBudget(t *testing.T) {
	for _, cpus := range []int{1, 2, 7, 64, 300} {
		refused := 0
		for shares := range 5000 {
			o := Options{Shares: shares}
			size := o.RingBytes(cpus)
			if shares <= 1 && size != (&Options{}).RingBytes(cpus) {
				t.Errorf("%d tracers on %d CPUs: %d bytes", shares, cpus, size)
			}
			if o.checkShares(cpus) != nil {
				refused++
				continue
			}
			if refused > 0 {
				t.Errorf("%d tracers on %d CPUs are taken, fewer are not", shares, cpus)
			}
			if total := size * cpus * max(shares, 1); total > ringBudget {
				t.Errorf("%d tracers on %d CPUs: %d bytes in all", shares, cpus, total)
			}
		}
		if want := max(5000-1-ringBudget/MinRingSize/cpus, 0); refused != want {
			t.Errorf("%d CPUs: %d refused, want %d", cpus, refused, want)
		}
	}
	if err := (&Options{Shares: 100000, RingSize: 1 << 20}).checkShares(64); err != nil {
		t.Errorf("a given size: %v", err)
	}
}

func TestSidebandBytes(t *testing.T) {
	for shares, want := range map[int]int{0: 256 << 10, 1: 256 << 10, 2: 128 << 10, 3: 64 << 10, 8: 32 << 10, 500: 32 << 10} {
		if got := (&Options{Shares: shares}).SidebandBytes(); got != want {
			t.Errorf("%d tracers: %d, want %d", shares, got, want)
		}
	}
}
