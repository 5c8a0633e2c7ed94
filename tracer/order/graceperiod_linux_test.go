package order

import (
	"errors"
	"testing"

	"rtrace-bpf/tracer/host"
)

// The bound is the start of the last completed grace period, not of the current one.
func TestGrace(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	g := StartGrace(func() error {
		begun <- struct{}{}
		<-end
		return nil
	})
	before := g.bound(Clock())
	<-begun
	during := Clock()
	if got := g.bound(during); got != before {
		t.Errorf("during the first grace period the bound is %d, want %d", got, before)
	}
	end <- struct{}{}
	<-begun // the next one, which bound requested: the first is over
	got := g.bound(Clock())
	if got <= before || got > during {
		t.Errorf("the bound is %d, want one after %d and not after %d", got, before, during)
	}
	end <- struct{}{}
	<-begun // requested by the last call of bound
	end <- struct{}{}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// If the kernel refuses to wait, the bound lags by perfSlack.
func TestGraceRefused(t *testing.T) {
	g := StartGrace(func() error { return errors.New("no") })
	g.bound(1)
	g.running.Wait()
	if got := g.bound(perfSlack + 5); got != 5 {
		t.Errorf("the bound is %d, want 5", got)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestGracePeriod(t *testing.T) {
	if err := GracePeriod([]int{0}); err == nil {
		t.Error("GracePeriod returned no error with a single CPU, where the kernel does not wait")
	}
	cpus, err := host.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if err := GracePeriod(cpus); err != nil {
		t.Skipf("SKIPPED-KERNEL: %v", err)
	}
}
