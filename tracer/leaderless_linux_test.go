package tracer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// leaderless traces a program whose main thread ends before another one, until enough
// returns true for a record, and then to its end.
func leaderless(t *testing.T, change func(o *plan.Options), enough func(child *testutil.Child, rec *trace.Record) bool) (*recording, *testutil.Report, []*trace.Record) {
	t.Helper()
	const pairs = 1000
	child := testutil.Spawn(t, leaderlessProgram(t), "1000")
	child.Ready()
	sufficient := make(chan struct{})
	var once sync.Once
	r := watched(t, child.PID, change, func(_ *recording, rec *trace.Record) {
		if enough(child, rec) {
			once.Do(func() { close(sufficient) })
		}
	})
	defer testutil.Unstuck(t, child.PID)()
	child.Go()
	select {
	case <-sufficient:
	case err := <-r.done:
		t.Fatalf("the trace ended early: %v", err)
	}
	child.Close()
	report := child.Report()
	records := r.end()
	main := 0
	for _, rec := range ofKind(records, trace.KindCall) {
		if int(rec.TID) == child.PID {
			main++
		}
	}
	if main != 2*pairs {
		t.Errorf("%d calls of the main thread, %d were made", main, 2*pairs)
	}
	return r, report, records
}

// leaderlessProgram is static, so that other tracers of the machine do not touch it.
func leaderlessProgram(t *testing.T) string {
	t.Helper()
	return testutil.Build(t, "leaderless", "-static")
}

// someCalls returns a function that is true after enough calls of a thread other than the
// main one.
func someCalls() func(child *testutil.Child, rec *trace.Record) bool {
	seen := 0
	return func(child *testutil.Child, rec *trace.Record) bool {
		if rec.Kind == trace.KindCall && int(rec.TID) != child.PID {
			seen++
		}
		return seen >= 2000
	}
}

// Perf events end with the thread that they were attached to, the main thread. If it ends
// before the others, the events are attached to another thread, and the trace contains
// the time in which calls are missing. Links of uprobe_multi stay.
func TestMainThreadEndsFirst(t *testing.T) {
	testutil.NeedBPF(t)
	for _, way := range ways(t) {
		t.Run(way.name, func(t *testing.T) {
			r, report, records := leaderless(t, way.set, someCalls())
			s := r.tracer.Stats()
			made := report.Ops["alloc"] + report.Ops["free"]
			if r.tracer.plan.Mechanisms.Attach == host.MechanismMulti {
				r.whole()
				if s.Calls != made {
					t.Errorf("%d calls recorded, %d made", s.Calls, made)
				}
				return
			}
			gaps := ofKind(records, trace.KindLost)
			if len(gaps) != 1 || s.Lost[order.LossProbesMoved] != 1 || s.Losses() != 1 {
				t.Fatalf("lost: %v, in the trace: %d times", s.Lost, len(gaps))
			}
			gap := gaps[0]
			if gap.Lost.Reason != order.LossProbesMoved.String() || gap.Lost.Since >= gap.Time {
				t.Errorf("%+v at %d", gap.Lost, gap.Time)
			}
			for _, rec := range ofKind(records, trace.KindExit) {
				if rec.TID == rec.PID && !rec.Exit.Process && rec.Time != gap.Lost.Since {
					t.Errorf("the main thread ended at %d, the gap begins at %d", rec.Time, gap.Lost.Since)
				}
			}
			if s.Calls > made {
				t.Errorf("%d calls recorded, %d made", s.Calls, made)
			}
			missingIn(t, records, gap)
		})
	}
}

// missingIn checks that calls of the other thread are missing in the gap only. On a busy machine the
// thread may not run in that time: then none is missing.
func missingIn(t *testing.T, records []*trace.Record, gap *trace.Record) {
	t.Helper()
	const sizes = 4096 // of testdata/progs/leaderless.c
	size := 48         // of the next allocation; 0 after a free whose allocation is missing
	allocated := false // the next call is a free
	last := gap.Lost.Since
	for _, rec := range ofKind(records, trace.KindCall) {
		if rec.TID == rec.PID {
			continue
		}
		alloc := rec.Call.Op == trace.OpAlloc
		follows := alloc != allocated && (!alloc || size == 0 || rec.Call.Size == uint64(size))
		if !follows && (last > gap.Time || rec.Time < gap.Lost.Since) {
			t.Errorf("calls are missing between %d and %d, before %+v; the gap is from %d to %d", last, rec.Time, rec.Call, gap.Lost.Since, gap.Time)
		}
		switch {
		case alloc:
			size = 48 + (int(rec.Call.Size)-48+1)%sizes
		case !allocated:
			size = 0
		}
		allocated, last = alloc, rec.Time
	}
}

// A process whose main thread ended before the trace is refused with that reason, and not
// as one that has ended.
func TestMainThreadEndedBefore(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "leaderless"), "0")
	child.Ready()
	child.Go()
	waitLeaderless(t, child.PID)
	if p, err := plan.New(plan.Options{PID: child.PID}); !errors.Is(err, host.ErrLeaderless) {
		t.Errorf("plan %v: %v", p, err)
	}
	child.Close()
	child.Succeed()
}

// waitLeaderless waits until the main thread has ended, and returns another thread.
func waitLeaderless(t *testing.T, pid int) (tid int) {
	t.Helper()
	traced := &process.Target{PID: pid}
	for {
		tid, settled := traced.Carrier()
		switch {
		case tid == 0 && settled:
			t.Fatal("the process has ended")
		case tid != pid && settled:
			return tid
		}
	}
}

// passBy attaches another tracer to the program and detaches it.
func passBy(t *testing.T) {
	t.Helper()
	child := testutil.Spawn(t, leaderlessProgram(t), "0")
	child.Ready()
	r := attachTo(t, child.PID, nil)
	r.tracer.Stop()
	r.end()
	child.Go()
	child.Close()
	child.Succeed()
}

// When the main thread has ended and another tracer attaches and detaches, the kernel
// removes the probes. The tracer attaches them again, and the trace contains the time in
// which they may have been missing.
func TestProbesComeBack(t *testing.T) {
	testutil.NeedBPF(t)
	held := make(chan struct{})
	var once sync.Once
	passed := false
	some := someCalls()
	change := func(o *plan.Options) {
		o.Mechanism = host.MechanismMulti
		log := o.Log
		o.Log = func(format string, args ...any) {
			log(format, args...)
			if strings.Contains(fmt.Sprintf(format, args...), "holds the probes") {
				once.Do(func() { close(held) })
			}
		}
	}
	r, report, records := leaderless(t, change, func(child *testutil.Child, rec *trace.Record) bool {
		if !passed && rec.Kind == trace.KindExit && int(rec.TID) == child.PID {
			child.Signal(unix.SIGSTOP) // so that no call is really missing
			passBy(t)
			<-held
			passed = true
			child.Signal(unix.SIGCONT)
		}
		return passed && some(child, rec)
	})
	s, made := r.tracer.Stats(), report.Ops["alloc"]+report.Ops["free"]
	if s.Calls != made || s.Losses() != 1 {
		t.Errorf("%d calls recorded, %d made, lost %v", s.Calls, made, s.Lost)
	}
	gaps := ofKind(records, trace.KindLost)
	if len(gaps) != 1 || gaps[0].Lost.Reason != order.LossProbesMoved.String() || gaps[0].Lost.Since >= gaps[0].Time {
		t.Errorf("gaps %+v", gaps)
	}
}

// Probes that are missing in the process are noticed, and those that a thread holds stay.
func TestMissingProbesAreNoticed(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, leaderlessProgram(t), "0")
	child.Ready()
	o := plan.Options{PID: child.PID, Mechanism: host.MechanismMulti}
	p, err := plan.New(o)
	needWay(t, &o, err)
	if err != nil {
		t.Fatal(err)
	}
	k := newKernel(p)
	if err := k.attach(p); err != nil {
		t.Fatal(errors.Join(err, k.Close()))
	}
	child.Go()
	tid := waitLeaderless(t, child.PID)
	b, err := k.probes.Breakpoints(tid)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	look := func(when string, want bool) {
		t.Helper()
		if missing := b.Missing(); missing != want {
			t.Errorf("%s: missing: %v", when, missing)
		}
	}
	look("at first", false)
	passBy(t)
	look("after another tracer", true)
	if err := k.probes.Hold(tid); err != nil {
		t.Error(err)
	}
	look("held", false)
	passBy(t)
	look("held, after another tracer", false)
	if err := errors.Join(k.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	look("detached", true)
	testutil.CodeOf(t, tid).Original(t)
	child.Close()
	child.Succeed()
}

// After a pause the probes are attached again, even if the main thread has ended.
func TestPauseWithoutMainThread(t *testing.T) {
	testutil.NeedBPF(t)
	for _, mechanism := range []host.Mechanism{host.MechanismMulti, host.MechanismPerf} {
		t.Run(mechanism.String(), func(t *testing.T) {
			pauses, after := 0, 0
			change := func(o *plan.Options) { o.Mechanism, o.MaxRate = mechanism, 20_000 }
			leaderless(t, change, func(_ *testutil.Child, rec *trace.Record) bool {
				switch {
				case rec.Kind == trace.KindLost && rec.Lost.Reason == trace.LostPaused:
					pauses++
				case rec.Kind == trace.KindCall && pauses >= 2:
					after++
				}
				return after > 100
			})
		})
	}
}

// The error that ended a recording is returned by each further read.
func TestErrorIsReturnedEachTime(t *testing.T) {
	why := fmt.Errorf("move the probes: %w", keeper.ErrEnded)
	r := &Tracer{ended: true, err: why}
	for range 2 {
		if err := r.finish(new(trace.Record)); !errors.Is(err, keeper.ErrEnded) {
			t.Errorf("%v, want %v", err, why)
		}
	}
}

// When the process that holds the probes is killed, the recording ends with an error, and
// what was recorded is returned.
func TestKeeperKilled(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "leaderless"), "1000")
	child.Ready()
	seen := 0
	enough := make(chan struct{})
	r := watched(t, child.PID, nil, func(_ *recording, rec *trace.Record) {
		if rec.Kind == trace.KindCall {
			if seen++; seen == 2000 {
				close(enough)
			}
		}
	})
	child.Go()
	<-enough
	tid := waitLeaderless(t, child.PID)
	holder, _ := r.tracer.kernel.probes.Keeper()
	if err := unix.Kill(holder, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-r.done; !errors.Is(err, keeper.ErrEnded) {
		t.Errorf("read: %v", err)
	}
	r.done <- nil // for end, which receives it
	r.end()
	testutil.CodeOf(t, tid).Original(t)
	child.Close()
	child.Succeed()
}
