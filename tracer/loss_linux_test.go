package tracer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/hosttest"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// overflowing records a program with the smallest rings, and reads only after it has
// ended.
func overflowing(t *testing.T, buffer plan.Buffer, program string, args ...string) *recording {
	t.Helper()
	child := testutil.Spawn(t, testutil.Build(t, program), args...)
	child.Ready()
	p, err := plan.New(plan.Options{PID: child.PID, RingSize: plan.MinRingSize, Buffer: buffer})
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Succeed()
	r := &recording{t: t, tracer: tracer, done: make(chan error, 1)}
	r.done <- r.read()
	return r
}

// Events that do not fit are counted: with the smallest rings and a reader that does not
// read, recorded and lost events add up to those made.
func TestLossIsCounted(t *testing.T) {
	testutil.NeedBPF(t)
	const pairs = 200_000
	for _, buffer := range []plan.Buffer{plan.BufferRing, plan.BufferPerf} {
		r := overflowing(t, buffer, "loop", "1", "200000")
		records := r.end()
		s := r.tracer.Stats()
		if s.Lost[order.LossRingFull] == 0 {
			t.Fatal("nothing was lost: the test does not test")
		}
		if got := s.Calls + s.Lost[order.LossRingFull]; got != 2*pairs {
			t.Errorf("buffer %d: %d recorded and %d lost are %d events, %d were made",
				buffer, s.Calls, s.Lost[order.LossRingFull], got, 2*pairs)
		}
		var inTrace uint64
		for _, rec := range ofKind(records, trace.KindLost) {
			if rec.Lost.Reason == order.LossRingFull.String() {
				inTrace += rec.Lost.Count
			}
		}
		if inTrace != s.Lost[order.LossRingFull] {
			t.Errorf("buffer %d: %d losses in the trace, %d counted", buffer, inTrace, s.Lost[order.LossRingFull])
		}
	}
}

// A slow reader at the end loses nothing: draining waits for it as long as it continues,
// here longer than the time limit.
func TestDrainWaitsForTheReader(t *testing.T) {
	testutil.NeedBPF(t)
	const pairs = 150_000 // more than fit into the queue, fewer than fit into the ring
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "1", "150000")
	child.Ready()
	p, err := plan.New(plan.Options{PID: child.PID, RingSize: 64 << 20, Testing: plan.TestOptions{DrainLimit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Succeed()
	r := &recording{t: t, tracer: tracer, done: make(chan error, 1)}
	r.done <- r.read()
	r.end()
	r.whole()
	if s := tracer.Stats(); s.Calls != 2*pairs {
		t.Errorf("%d calls in the trace, %d were made", s.Calls, 2*pairs)
	}
}

// No open call is lost when the tracer has its programs read their settings again.
func TestNewGenerationsLoseNothing(t *testing.T) {
	testutil.NeedBPF(t)
	const pairs = 30_000
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "2", "30000")
	child.Ready()
	r := attachTo(t, child.PID, nil)
	child.Go()
	for running := true; running; {
		select {
		case <-child.Exited():
			running = false
		default:
			if err := r.tracer.kernel.programs.Switch.Renew(); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.end()
	r.whole()
	if s := r.tracer.Stats(); s.Calls != 4*pairs || s.Unmatched != 0 {
		t.Errorf("%d calls in the trace, %d of them unmatched; %d were made", s.Calls, s.Unmatched, 4*pairs)
	}
}

func TestKernelsThatLackSomething(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "alloc"), "1", "1")
	child.Ready()
	old := func(name string) error { return fmt.Errorf("%s: %w: it needs Linux 9.9", name, host.ErrUnsupported) }
	locked := errors.New("the kernel is locked down")
	tests := map[string]struct {
		features hosttest.Features
		change   func(o *plan.Options)
		refused  string // part of the error; empty if the plan works
		state    plan.State
		attach   host.Mechanism
		sites    plan.Sites // cookies if not set
	}{
		"all there":                    {state: plan.StateTask, attach: host.MechanismMulti},
		"no task storage":              {features: hosttest.Features{"TaskStorage": old("task storage")}, state: plan.StateHash, attach: host.MechanismMulti},
		"no uprobe_multi":              {features: hosttest.Features{"UprobeMulti": old("uprobe_multi")}, state: plan.StateTask, attach: host.MechanismPerf},
		"neither":                      {features: hosttest.Features{"UprobeMulti": old("x"), "TaskStorage": old("y")}, state: plan.StateHash, attach: host.MechanismPerf},
		"no ring buffer":               {features: hosttest.Features{"RingBuffer": old("BPF ring buffers")}, refused: "BPF ring buffers: not supported by this kernel: it needs Linux 9.9"},
		"no ring buffer, perf buffers": {features: hosttest.Features{"RingBuffer": old("BPF ring buffers")}, change: func(o *plan.Options) { o.Buffer = plan.BufferPerf }, state: plan.StateTask, attach: host.MechanismMulti},
		"no cookies":                   {features: hosttest.Features{"AttachCookie": old("attach cookies")}, state: plan.StateTask, attach: host.MechanismMulti, sites: plan.SitesAddress},
		"no cookies, asked for":        {features: hosttest.Features{"AttachCookie": old("attach cookies")}, change: func(o *plan.Options) { o.Sites = plan.SitesCookie }, refused: "attach cookies"},
		"addresses asked for":          {features: hosttest.Features{"AttachCookie": locked}, change: func(o *plan.Options) { o.Sites = plan.SitesAddress }, state: plan.StateTask, attach: host.MechanismMulti, sites: plan.SitesAddress},
		"asking for cookies fails":     {features: hosttest.Features{"AttachCookie": locked}, refused: "locked down"},
		"locked down":                  {features: hosttest.Features{"TaskStorage": locked}, refused: "locked down"},
		"multi asked for":              {features: hosttest.Features{"UprobeMulti": old("uprobe_multi")}, change: func(o *plan.Options) { o.Mechanism = host.MechanismMulti }, refused: "uprobe_multi"},
		"perf asked for":               {change: func(o *plan.Options) { o.Mechanism = host.MechanismPerf }, state: plan.StateTask, attach: host.MechanismPerf},
		"hash asked for":               {change: func(o *plan.Options) { o.State = plan.StateHash }, state: plan.StateHash, attach: host.MechanismMulti},
		"no types":                     {features: hosttest.Features{"Types": old("types of the kernel")}, refused: "types of the kernel"},
		"no reads of the kernel":       {features: hosttest.Features{"KernelReads": locked}, refused: "locked down"},
		"no uprobes at all":            {features: hosttest.Features{"UprobeMulti": old("uprobe_multi"), "PerfUprobes": old("uprobes as perf events")}, refused: "uprobes as perf events"},
		"no perf uprobes":              {features: hosttest.Features{"PerfUprobes": old("uprobes as perf events")}, state: plan.StateTask, attach: host.MechanismMulti},
		"no privilege":                 {features: hosttest.Features{"Capabilities": fmt.Errorf("%w CAP_BPF", host.ErrNotPrivileged)}, refused: "missing privilege CAP_BPF"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := plan.Options{PID: child.PID, Features: test.features}
			if test.change != nil {
				test.change(&o)
			}
			p, err := plan.New(o)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("error %v, want one with %q", err, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if p.Mechanisms.State != test.state || p.Mechanisms.Attach != test.attach {
				t.Errorf("state %d by %s, want %d by %s", p.Mechanisms.State, p.Mechanisms.Attach, test.state, test.attach)
			}
			if want := max(test.sites, plan.SitesCookie); p.Mechanisms.Sites != want {
				t.Errorf("sites known by %d, want %d", p.Mechanisms.Sites, want)
			}
		})
	}
}

// The preflights themselves work: this kernel has the features that they look for.
func TestPreflights(t *testing.T) {
	testutil.NeedBPF(t)
	if err := (host.Kernel{}).UprobeMulti(); err != nil {
		if !errors.Is(err, host.ErrUnsupported) {
			t.Error(err)
		}
		t.Log(err)
	}
	if err := host.SurvivesSeccomp(); err != nil {
		if !errors.Is(err, host.ErrReturnProbes) {
			t.Error(err)
		}
		t.Log(err)
	}
	if err := host.KnowsShadowStacks(); err != nil {
		if !errors.Is(err, host.ErrReturnProbes) {
			t.Error(err)
		}
		t.Log(err)
	}
}

// Several traces can begin at the same time.
func TestPreflightsAtATime(t *testing.T) {
	testutil.NeedBPF(t)
	want := (host.Kernel{}).UprobeMulti()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := (host.Kernel{}).UprobeMulti(); (err == nil) != (want == nil) {
				t.Errorf("%v, alone %v", err, want)
			}
		})
	}
	all.Wait()
}
