package tracer

import (
	"errors"
	"io"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/governor"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

const second = uint64(time.Second)

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
			const edge = int64(governor.ShortestPause / 10)
			if call.Time > lost.Lost.Since+edge && call.Time < lost.Time-edge {
				within++
			}
		}
		if within > threads {
			t.Errorf("%d calls in the pause from %d to %d", within, lost.Lost.Since, lost.Time)
		}
	}
	if paused < governor.ShortestPause {
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
