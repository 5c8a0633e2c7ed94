package machine

import (
	"errors"
	"math"
	"os"
	"testing"
)

// A Gauge reads the values of this process, and reports that a process without one is gone.
func TestGauge(t *testing.T) {
	g, err := NewGauge(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if n, err := g.Resident(); err != nil || n < 1<<20 || n%uint64(os.Getpagesize()) != 0 {
		t.Errorf("%d bytes resident, %v", n, err)
	}
	before, err := g.CPU()
	if err != nil || before <= 0 {
		t.Errorf("%v on processors, %v", before, err)
	}
	for after := before; after == before; {
		if after, err = g.CPU(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewGauge(math.MaxInt32); !errors.Is(err, ErrGone) {
		t.Errorf("of no process: %v", err)
	}
}
