package tracer

import (
	"bytes"
	"maps"
	"os/exec"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// After an exec the trace has the new program's mappings, and its calls if it uses the
// same C library. With each way to find sites, the library may be at another address
// then.
func TestExec(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, execTracedAllWays)
}

func execTracedAllWays(t *testing.T, build testutil.Builder) {
	for name, change := range map[string]func(o *plan.Options){
		"best": nil, "address": func(o *plan.Options) { o.Sites = plan.SitesAddress }, "oldest": oldest,
	} {
		t.Run(name, func(t *testing.T) { execTraced(t, exec.Command(build(t, "exec"), "10", build(t, "every")), change) })
	}
}

// execTraced records a program that executes another one, the last argument of cmd.
func execTraced(t *testing.T, cmd *exec.Cmd, change func(o *plan.Options)) {
	every := cmd.Args[len(cmd.Args)-1]
	child := testutil.Start(t, cmd)
	child.Ready()
	r := attachTo(t, child.PID, change)
	child.Go()
	child.Ready() // the second program
	child.Go()
	child.Succeed()
	records := r.end()
	r.whole()
	first, second, ok := bytes.Cut(child.Output(), []byte("}\n"))
	if !ok {
		t.Fatalf("output without two reports:\n%s", child.Output())
	}
	execs, mapped := 0, false
	var before, after []*trace.Record
	for _, rec := range records {
		switch rec.Kind {
		case trace.KindExec:
			execs++
		case trace.KindMapping:
			if execs > 0 && rec.Mapping.Path == every {
				mapped = true
			}
		}
		if execs == 0 {
			before = append(before, rec)
		} else {
			after = append(after, rec)
		}
	}
	if execs != 1 || !mapped {
		t.Errorf("%d execs, new program mapped: %v; want 1 and true", execs, mapped)
	}
	for _, half := range []struct {
		output  []byte
		records []*trace.Record
	}{{append(first, "}\n"...), before}, {second, after}} {
		report, err := testutil.ParseReport(half.output)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, canonical(half.records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
	}
}

// A process can execute a program of the other width, and then one of its own again.
// Calls of the library that the trace began with are recorded; while the other one is in
// use, calls are reported as missing.
func TestExecOfTheOtherWidth(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, execOtherWidth)
}

func execOtherWidth(t *testing.T, build testutil.Builder) {
	testutil.Need32Bit(t)
	other := testutil.Build32(t, "exec")
	if build(t, "exec") == other {
		other = testutil.Build(t, "exec")
	}
	child := testutil.Spawn(t, build(t, "exec"), "10", other, "20", build(t, "exec"), "30", "/bin/true")
	child.Ready()
	unprobed := make(chan bool, 1)
	r := watched(t, child.PID, func(o *plan.Options) { o.HeapGrowth = true }, func(r *recording, rec *trace.Record) {
		if rec.Kind == trace.KindExec {
			unprobed <- r.tracer.stream.Stats.Unprobed
		}
	})
	child.Go()
	child.Ready() // the second program
	if !<-unprobed {
		t.Error("the other library counts as probed")
	}
	child.Go()
	child.Ready() // the third program
	<-unprobed
	child.Go()
	child.Succeed()
	<-unprobed // unprobed was true
	records := r.end()
	made := map[int]int{} // calls of malloc(100), by the number of execs before them
	execs := 0
	for _, rec := range records {
		switch {
		case rec.Kind == trace.KindExec:
			execs++
		case rec.Kind == trace.KindCall && rec.Call.Function == "malloc" && rec.Call.Size == 100:
			made[execs]++
			if s := rec.Call.Stack; s.End != trace.StackComplete && execs == 0 {
				t.Errorf("call %d: stack %s %s", rec.Call.Seq, s.End, s.Reason)
			}
		}
	}
	if want := map[int]int{0: 10, 2: 30}; !maps.Equal(made, want) {
		t.Errorf("calls by the number of execs before: %v, want %v", made, want)
	}
	r.whole()
}

// A process can execute another program while the probes are attached. Calls of a program
// with another library are missing from the start; calls of one with the same library are
// not.
func TestExecBeforeTheProbes(t *testing.T) {
	testutil.NeedBPF(t)
	for name, test := range map[string]struct {
		flags    []string
		unprobed bool
	}{"same library": {nil, false}, "static": {[]string{"-static"}, true}} {
		t.Run(name, func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, "exec"), "10", testutil.Build(t, "exec", test.flags...), "20", "/nowhere")
			child.Ready()
			p, err := plan.New(plan.Options{PID: child.PID})
			if err != nil {
				t.Fatal(err)
			}
			child.Go()
			child.Ready() // the second program
			tracer, err := Open(p)
			if err != nil {
				t.Fatal(err)
			}
			tracer.Stop()
			r := &recording{t: t, tracer: tracer, done: make(chan error, 1)}
			r.done <- r.read()
			r.end()
			if got := tracer.Stats().Unprobed; got != test.unprobed {
				t.Errorf("the library has no probes: %v, want %v", got, test.unprobed)
			}
		})
	}
}
