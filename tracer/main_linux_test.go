package tracer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

func TestMain(m *testing.M) {
	host.RunAsChild()
	// As the command does. Without the privilege, tests that need it skip.
	_ = host.Prioritize()
	testutil.Main(m)
}

// recording is a trace that is being recorded.
type recording struct {
	t       *testing.T
	tracer  *Tracer
	done    chan error
	records []*trace.Record
	watch   func(r *recording, rec *trace.Record) // called for each record as it comes; may be nil
	ended   bool
}

// allocationsEnv names the way in which tests record allocations unless they choose one: returns,
// which is the default, or paths.
const allocationsEnv = "RTRACE_ALLOCATIONS"

// waysOf returns the way that allocationsEnv names.
func waysOf(t *testing.T) plan.Ways {
	t.Helper()
	name := os.Getenv(allocationsEnv)
	if name == "" {
		return plan.WaysReturns
	}
	ways, ok := plan.WayChoices()[name]
	if !ok {
		t.Fatalf("%s=%s: no such way", allocationsEnv, name)
	}
	return ways
}

// isInside reports whether the calls of a function are recorded inside it.
func (r *recording) isInside(function string) bool {
	all := r.tracer.Plan().Memory.Functions
	i := slices.IndexFunc(all, func(f plan.Function) bool { return f.Name == function })
	if i < 0 {
		return false
	}
	sites, _ := all[i].Inside()
	return sites > 0
}

// attachTo starts to record the process; change edits the options and may be nil.
func attachTo(t *testing.T, pid int, change func(o *plan.Options)) *recording {
	t.Helper()
	return watched(t, pid, change, nil)
}

// watched is attachTo for tests that need records while the trace is recorded. It calls
// watch from another goroutine.
func watched(t *testing.T, pid int, change func(o *plan.Options), watch func(r *recording, rec *trace.Record)) *recording {
	t.Helper()
	o := plan.Options{PID: pid, Depth: plan.DefaultDepth, Log: t.Logf, Ways: waysOf(t)}
	if change != nil {
		change(&o)
	}
	p, err := plan.New(o)
	needWay(t, &o, err)
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	tracer, err := Open(p)
	if err != nil {
		t.Fatalf("attach: %+v", err)
	}
	r := &recording{t: t, tracer: tracer, done: make(chan error, 1), watch: watch}
	go func() { r.done <- r.read() }()
	t.Cleanup(func() {
		if !r.ended { // the test failed: the next one must not see these probes
			_ = tracer.Close()
		}
	})
	return r
}

func (r *recording) read() error {
	var rec trace.Record
	for {
		switch err := r.tracer.ReadRecord(&rec); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r.records = append(r.records, rec.Clone())
		if r.watch != nil {
			r.watch(r, &rec)
		}
	}
}

// end waits for the end of the trace, which the end of the process or Stop causes,
// detaches the probes and returns all records.
func (r *recording) end() []*trace.Record {
	r.t.Helper()
	if err := <-r.done; err != nil {
		r.t.Errorf("read: %v", err)
	}
	r.ended = true
	if err := r.tracer.Close(); err != nil {
		r.t.Errorf("close: %v", err)
	}
	return r.records
}

// whole fails the test if anything in the trace is missing or doubtful.
func (r *recording) whole() {
	r.t.Helper()
	s := r.tracer.Stats()
	for reason, n := range s.Lost {
		if n != 0 {
			r.t.Errorf("%d × %s", n, order.Loss(reason))
		}
	}
	if s.Replaced != 0 {
		r.t.Errorf("%d addresses were live twice", s.Replaced)
	}
}

// traceRun records a program of testdata/progs from its gate to its end. The trace must
// be complete.
func traceRun(t *testing.T, change func(o *plan.Options), program string, args ...string) (*recording, *testutil.Report, []*trace.Record) {
	t.Helper()
	return tracePreloaded(t, "", change, program, args...)
}

// calls returns the calls of a trace by thread, in the form of a report. It joins the two
// halves of a realloc that was split.
func calls(records []*trace.Record) map[int][]testutil.Call {
	byThread := map[int][]testutil.Call{}
	for _, rec := range records {
		if rec.Kind != trace.KindCall {
			continue
		}
		c := testutil.Call{
			TID: int(rec.TID), Op: rec.Call.Op.String(), Function: rec.Call.Function,
			Ptr: rec.Call.ID, Old: rec.Call.OldID, Size: rec.Call.Size,
		}
		if rec.Call.Op == trace.OpFree {
			c.Ptr, c.Old = 0, rec.Call.ID
		}
		all := byThread[c.TID]
		if n := len(all); n > 0 && c.Op == "alloc" && all[n-1].Op == "free" &&
			c.Function == all[n-1].Function && c.Function != "free" {
			all[n-1].Op, all[n-1].Ptr, all[n-1].Size = "move", c.Ptr, c.Size
			continue
		}
		byThread[c.TID] = append(all, c)
	}
	return byThread
}

// compare checks the calls of each thread in the report, one by one.
func compare(t *testing.T, records []*trace.Record, report *testutil.Report) {
	t.Helper()
	got, want := calls(records), map[int][]testutil.Call{}
	for _, c := range report.Done() {
		want[c.TID] = append(want[c.TID], c)
	}
	if len(want) == 0 {
		t.Fatal("the program has logged nothing")
	}
	for tid, w := range want {
		g := got[tid]
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("thread %d, call %d:\n trace   %s\n program %s", tid, i, describe(g[i]), describe(w[i]))
			}
		}
		if len(g) != len(w) {
			t.Errorf("thread %d: %d calls in the trace, %d made", tid, len(g), len(w))
		}
	}
}

func describe(c testutil.Call) string {
	return fmt.Sprintf("%s %s old=%#x new=%#x size=%d", c.Op, c.Function, c.Old, c.Ptr, c.Size)
}

// ofKind returns the records of one kind.
func ofKind(records []*trace.Record, k trace.Kind) []*trace.Record {
	var out []*trace.Record
	for _, rec := range records {
		if rec.Kind == k {
			out = append(out, rec)
		}
	}
	return out
}
