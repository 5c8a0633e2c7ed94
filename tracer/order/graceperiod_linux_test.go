package order

import (
	"errors"
	"testing"

	"rtrace-bpf/tracer/host"
)

// The bound is the start of the last grace period that is over, not of the one
// that goes on.
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
		t.Errorf("while the first grace period goes on the bound is %d, want %d", got, before)
	}
	end <- struct{}{}
	<-begun // the next one, since it was asked for: the first is over
	got := g.bound(Clock())
	if got <= before || got > during {
		t.Errorf("the bound is %d, want one behind %d and not behind %d", got, before, during)
	}
	end <- struct{}{}
	<-begun // asked for by the last look
	end <- struct{}{}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// Where the kernel does not tell, the bound lags.
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
		t.Error("with a single CPU the kernel waits for nothing, and that counted as a grace period")
	}
	cpus, err := host.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	if err := GracePeriod(cpus); err != nil {
		t.Skipf("SKIPPED-KERNEL: %v", err)
	}
}
