package governor

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/probe"
)

// fake is a process, its programs and their probes. It records what was done to them.
type fake struct {
	done    []string
	thread  int // that the probes are attached to
	carrier int // that they could be attached to
	// When the programs were last switched off and on.
	off, on uint64
}

func (f *fake) note(what string) error {
	f.done = append(f.done, what)
	return nil
}

func (f *fake) Suspend() error       { f.off = order.Clock(); return f.note("suspend") }
func (f *fake) Enable() error        { f.on = order.Clock(); return f.note("enable") }
func (f *fake) Detach() error        { return f.note("detach") }
func (f *fake) Reattach() error      { return f.note("reattach") }
func (f *fake) Revive() error        { return f.note("revive") }
func (f *fake) Hold(int) error       { return f.note("hold") }
func (f *fake) Thread() int          { return f.thread }
func (f *fake) Outlive() bool        { return false }
func (f *fake) Carrier() (int, bool) { return f.carrier, true }

func (f *fake) Breakpoints(int) (*probe.Breakpoints, error) { return nil, f.note("breakpoints") }

// governed returns the governor of a fake.
func governed(limit uint64) (*Governor, *fake) {
	f := &fake{}
	return New(limit, 0, f, f, f), f
}

const second = uint64(time.Second)

// Below the limit nothing happens, in any period.
func TestNoPauseBelowTheLimit(t *testing.T) {
	g, f := governed(1000)
	for n := range uint64(5) {
		for range 4 {
			if err := g.take(250, 1+n*second); err != nil {
				t.Fatal(err)
			}
			if over, err := g.step(1 + n*second); over || err != nil {
				t.Fatalf("over: %v, %v", over, err)
			}
		}
	}
	if g.paused() || len(f.done) > 0 {
		t.Errorf("paused since %d: %v", g.since, f.done)
	}
}

// A pause includes the moments in which the programs are switched off and on: all calls
// missing because of it are between its beginning and its end.
func TestPauseContainsItsEdges(t *testing.T) {
	g, f := governed(1)
	if _, ended, err := g.Govern(2); ended || err != nil {
		t.Fatalf("ended: %v, %v", ended, err)
	}
	if g.since == 0 || g.since > f.off {
		t.Errorf("the pause begins at %d, the programs were switched off at %d", g.since, f.off)
	}
	g.mover.running.Wait()
	if _, err := g.mover.done(); err != nil { // unless Govern has received it
		t.Fatal(err)
	}
	g.mover.state = attaching
	g.mover.moved <- nil
	gap, ended, err := g.Govern(0)
	if !ended || err != nil {
		t.Fatalf("ended: %v, %v", ended, err)
	}
	if gap.Since != g.since || gap.Until < f.on || f.on == 0 || gap.Reason != order.LossPaused {
		t.Errorf("the pause is %+v, the programs were switched on at %d", gap, f.on)
	}
}

// steps calls step after the goroutine has finished.
func (g *Governor) steps(t *testing.T, now uint64) (over bool) {
	t.Helper()
	g.mover.running.Wait()
	over, err := g.step(now)
	if err != nil {
		t.Fatal(err)
	}
	g.mover.running.Wait()
	return over
}

// A pause lasts until the calls are no more than the limit allows, including calls
// reported after it has begun, and at least a second.
func TestLengthOfPause(t *testing.T) {
	for name, test := range map[string]struct {
		taken   []int
		at      uint64 // when the first calls were taken, within the period
		minimum uint64 // the end of the pause, from the start of the period
	}{
		"much":       {taken: []int{5000}, minimum: 5 * second},
		"behind":     {taken: []int{3000, 2000, 500}, minimum: 5500 * second / 1000},
		"just above": {taken: []int{1001}, at: second / 2, minimum: second*3/2 - second/100},
	} {
		g, f := governed(1000)
		g.rate.began = order.Clock()
		at := func(offset uint64) uint64 { return g.rate.began + offset }
		for _, n := range test.taken {
			if err := g.take(n, at(test.at)); err != nil {
				t.Fatal(err)
			}
		}
		g.since = at(test.at)
		if g.steps(t, at(test.at)) || g.steps(t, at(test.minimum-second/50)) || !slices.Equal(f.done, []string{"suspend", "detach"}) {
			t.Errorf("%s: too early: %v", name, f.done)
		}
		end := at(test.minimum + second/50)
		if g.steps(t, end) || !slices.Equal(f.done, []string{"suspend", "detach", "reattach"}) {
			t.Errorf("%s: %v", name, f.done)
		}
		if !g.steps(t, end) || g.paused() || g.rate.taken != 0 || g.rate.began != end {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// Probes cannot be attached to a process that has ended, which is not an error of the
// trace. Other failures are.
func TestPauseThatCannotEnd(t *testing.T) {
	g, f := governed(1)
	g.mover.state, g.since = attaching, 1
	g.mover.moved <- unix.ESRCH
	if g.steps(t, 2) || !g.paused() || g.steps(t, 3) || len(f.done) > 0 {
		t.Errorf("%+v: %v", g, f.done)
	}
	// If only the thread has ended, another one is tried.
	f.carrier = 5
	g.mover.state = attaching
	g.mover.moved <- unix.ESRCH
	if g.steps(t, 4) || g.steps(t, 5) || g.steps(t, 6+2*second) || !g.steps(t, 7+2*second) || !slices.Equal(f.done, []string{"detach", "reattach"}) {
		t.Errorf("%+v: %v", g, f.done)
	}
	f.carrier = 0
	for _, at := range []state{detaching, attaching} {
		g.mover.state = at
		g.mover.moved <- unix.EMFILE
		if over, err := g.step(4); over || !errors.Is(err, unix.EMFILE) {
			t.Errorf("error %v", err)
		}
	}
}

// Perf events whose thread ends are attached to another thread, if there is one. The gap
// begins when the thread ended.
func TestAnotherThreadCarriesTheProbes(t *testing.T) {
	g, f := governed(0)
	g.mainThread, f.thread, f.carrier = 1, 1, 2
	began := order.Clock()
	g.ThreadEnded(3, began-2) // has no probes
	if _, ok, err := g.Govern(0); ok || err != nil || len(f.done) > 0 {
		t.Fatalf("a gap: %v, %v, %v", ok, err, f.done)
	}
	g.ThreadEnded(1, began-1)
	gap, ok, err := g.Govern(0)
	if err == nil && !ok {
		g.mover.running.Wait()
		gap, ok, err = g.Govern(0)
	}
	if !ok || err != nil || gap.Since != began-1 || gap.Until < f.on || gap.Reason != order.LossProbesMoved {
		t.Errorf("gap %+v: %v, %v", gap, ok, err)
	}
	if want := []string{"suspend", "revive", "enable"}; !slices.Equal(f.done, want) {
		t.Errorf("%v, want %v", f.done, want)
	}
}
