package tracer

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// governed returns a governor whose probe functions record what they were called for.
func governed(limit uint64) (*governor, *[]string) {
	var done []string
	note := func(what string) func() error {
		return func() error {
			done = append(done, what)
			return nil
		}
	}
	return &governor{
		carrier: func() (int, bool) { return 0, true },
		limit:   limit, suspend: note("suspend"), detach: note("detach"), reattach: note("reattach"), resume: note("resume"),
		moved: make(chan error, 1),
	}, &done
}

const second = uint64(time.Second)

// Below the limit nothing happens, in any period.
func TestNoPauseBelowTheLimit(t *testing.T) {
	g, done := governed(1000)
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
	if g.paused() || len(*done) > 0 {
		t.Errorf("paused since %d: %v", g.since, *done)
	}
}

// A pause includes the moments in which the programs are switched off and on: all calls
// missing because of it are between its beginning and its end.
func TestPauseContainsItsEdges(t *testing.T) {
	g, _ := governed(1)
	var off, on uint64
	g.suspend = func() error { off = order.Clock(); return nil }
	g.resume = func() error { on = order.Clock(); return nil }
	g.task, g.mainThread = func() int { return 1 }, 1
	c := collector{governor: g, arrived: 2}
	c.merger.Queues = make([]order.Queue, 1)
	if err := c.govern(); err != nil {
		t.Fatal(err)
	}
	if g.since == 0 || g.since > off {
		t.Errorf("the pause begins at %d, the programs were switched off at %d", g.since, off)
	}
	g.running.Wait()
	if err := <-g.moved; err != nil {
		t.Fatal(err)
	}
	g.state = governAttaching
	g.moved <- nil
	if err := c.govern(); err != nil {
		t.Fatal(err)
	}
	if len(c.next.Sides) != 1 || c.next.Sides[0].Seen != g.since || c.next.Sides[0].Time < on {
		t.Errorf("the pause is %+v, the programs were switched on at %d", c.next.Sides, on)
	}
}

// steps calls step after the goroutine has finished.
func (g *governor) steps(t *testing.T, now uint64) (over bool) {
	t.Helper()
	g.running.Wait()
	over, err := g.step(now)
	if err != nil {
		t.Fatal(err)
	}
	g.running.Wait()
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
		g, done := governed(1000)
		g.began = order.Clock()
		at := func(offset uint64) uint64 { return g.began + offset }
		for _, n := range test.taken {
			if err := g.take(n, at(test.at)); err != nil {
				t.Fatal(err)
			}
		}
		g.since = at(test.at)
		if g.steps(t, at(test.at)) || g.steps(t, at(test.minimum-second/50)) || !slices.Equal(*done, []string{"suspend", "detach"}) {
			t.Errorf("%s: too early: %v", name, *done)
		}
		end := at(test.minimum + second/50)
		if g.steps(t, end) || !slices.Equal(*done, []string{"suspend", "detach", "reattach"}) {
			t.Errorf("%s: %v", name, *done)
		}
		if !g.steps(t, end) || g.paused() || g.taken != 0 || g.began != end {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// Probes cannot be attached to a process that has ended, which is not an error of the
// trace. Other failures are.
func TestPauseThatCannotEnd(t *testing.T) {
	g, done := governed(1)
	g.state, g.since = governAttaching, 1
	g.moved <- unix.ESRCH
	if g.steps(t, 2) || !g.paused() || g.steps(t, 3) || len(*done) > 0 {
		t.Errorf("%+v: %v", g, *done)
	}
	// If only the thread has ended, another one is tried.
	g.carrier = func() (int, bool) { return 5, true }
	g.state = governAttaching
	g.moved <- unix.ESRCH
	if g.steps(t, 4) || g.steps(t, 5) || g.steps(t, 6+2*second) || !g.steps(t, 7+2*second) || !slices.Equal(*done, []string{"detach", "reattach"}) {
		t.Errorf("%+v: %v", g, *done)
	}
	g.carrier = func() (int, bool) { return 0, true }
	for _, state := range []governing{governDetaching, governAttaching} {
		g.state = state
		g.moved <- unix.EMFILE
		if over, err := g.step(4); over || !errors.Is(err, unix.EMFILE) {
			t.Errorf("error %v", err)
		}
	}
}

// Too many calls detach the probes: in a pause the code is as in the files, no call is
// recorded, and the trace reports the pause. On average there are as many calls as the
// limit allows. Calls that were open when a pause began do not confuse later ones.
func TestMaxRate(t *testing.T) {
	testutil.NeedBPF(t)
	const limit, threads, enough = 10_000, 2, 2
	for _, mechanism := range []host.Mechanism{host.MechanismMulti, host.MechanismPerf} {
		t.Run(mechanism.String(), func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, "loop"), "2")
			child.Ready()
			o := plan.Options{PID: child.PID, MaxRate: limit, Mechanism: mechanism}
			p, err := plan.New(o)
			needWay(t, &o, err)
			if err != nil {
				t.Fatal(err)
			}
			tracer, err := Open(p)
			if err != nil {
				t.Fatal(err)
			}
			defer testutil.Unstuck(t, child.PID)()
			child.Go()
			r := &recording{t: t, tracer: tracer, done: make(chan error, 1)}
			pauses := make(chan struct{}, 1000)
			r.watch = func(_ *recording, rec *trace.Record) {
				if rec.Kind == trace.KindLost {
					pauses <- struct{}{}
				}
			}
			began := order.Clock()
			go func() { r.done <- r.read() }()
			for len(testutil.CodeOf(t, child.PID).Changed) > 0 { // until the first pause
			}
			for range enough {
				<-pauses
			}
			tracer.Stop()
			records := r.end()
			pausesHold(t, records, threads)
			average(t, records, began, limit)
			s := tracer.Stats()
			for reason, n := range s.Lost {
				if (n != 0) != (order.Loss(reason) == order.LossPaused) {
					t.Errorf("%d × %s", n, order.Loss(reason))
				}
			}
			testutil.CodeOf(t, child.PID).Original(t)
		})
	}
}

// average checks that, whenever a pause ended, there had been no more calls than allowed,
// except for one that ended with the trace.
func average(t *testing.T, records []*trace.Record, began, limit uint64) {
	t.Helper()
	calls, last := uint64(0), records[len(records)-1].Time
	for _, rec := range records {
		switch rec.Kind {
		case trace.KindCall:
			calls++
		case trace.KindLost:
			if rec.Lost.Reason != trace.LostPaused {
				continue
			}
			if passed := uint64(rec.Time) - began; rec.Time < last-int64(second) && calls > passed*limit/second {
				t.Errorf("%d calls in %v", calls, time.Duration(passed))
			}
		}
	}
	if calls <= limit {
		t.Errorf("%d calls", calls)
	}
}

// pausesHold checks the pauses in a trace of malloc(32) and free. A pause may contain a
// call of each thread that was being recorded when it began, and the calls from while the
// programs were switched off and on.
func pausesHold(t *testing.T, records []*trace.Record, threads int) {
	t.Helper()
	var paused time.Duration
	for _, lost := range ofKind(records, trace.KindLost) {
		if lost.Lost.Reason != trace.LostPaused || lost.Lost.Count != 1 || lost.Lost.Since == 0 {
			t.Errorf("%+v", lost.Lost)
			continue
		}
		if length := time.Duration(lost.Time - lost.Lost.Since); length > 0 {
			paused += length
		}
		within := 0
		for _, call := range ofKind(records, trace.KindCall) {
			const edge = int64(shortestPause / 10)
			if call.Time > lost.Lost.Since+edge && call.Time < lost.Time-edge {
				within++
			}
		}
		if within > threads {
			t.Errorf("%d calls in the pause from %d to %d", within, lost.Lost.Since, lost.Time)
		}
	}
	if paused < shortestPause {
		t.Errorf("paused for %v", paused)
	}
	for i, call := range ofKind(records, trace.KindCall) {
		if call.Call.Op == trace.OpAlloc && call.Call.Size != 32 {
			t.Fatalf("call %d: %+v", i, call.Call)
		}
	}
}

// A trace can end in a pause, which then ends with it.
func TestEndInAPause(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "1")
	child.Ready()
	p, err := plan.New(plan.Options{PID: child.PID, MaxRate: 1})
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer testutil.Unstuck(t, child.PID)()
	child.Go()
	for len(testutil.CodeOf(t, child.PID).Changed) > 0 {
	}
	child.Close()
	child.Succeed()
	var rec, last trace.Record
	for err = tracer.ReadRecord(&rec); err == nil; err = tracer.ReadRecord(&rec) {
		if rec.Kind == trace.KindLost {
			last = *rec.Clone()
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := tracer.Close(); err != nil {
		t.Error(err)
	}
	if s := tracer.Stats(); last.Lost.Reason != trace.LostPaused || s.Paused != time.Duration(last.Time-last.Lost.Since) || s.Paused <= 0 {
		t.Errorf("%+v at %d, paused for %v", last.Lost, last.Time, s.Paused)
	}
}
