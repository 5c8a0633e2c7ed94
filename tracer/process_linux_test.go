package tracer

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/plan"
)

// When threads end, the C library frees the blocks in the thread's cache. Those frees are
// not calls of the program.
func TestThreadsThatExit(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, threadsThatExit)
}

func threadsThatExit(t *testing.T, build testutil.Builder) {
	r, report, records := traceRun(t, nil, build(t, "threads_exit"), "200")
	compare(t, records, report)
	s := r.tracer.Stats()
	if s.Unmatched != 0 || s.LiveBlocks != 8 || s.LiveBytes != 8*300 {
		t.Errorf("%d unmatched frees, %d blocks of %d bytes live; want 0, 8 and 2400", s.Unmatched, s.LiveBlocks, s.LiveBytes)
	}
	if got := len(ofKind(records, trace.KindExit)); got < 8 {
		t.Errorf("%d threads ended according to the trace, want at least 8", got)
	}
}

// Without task storage the tracer deletes the state of threads that ended, whether the
// kernel has no task storage or a thread could not get any.
func TestDeadThreadsLeaveNoState(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, eachDeadThreadsLeaveNoState)
}

func eachDeadThreadsLeaveNoState(t *testing.T, build testutil.Builder) {
	for name, change := range map[string]func(o *plan.Options){
		"none":   func(o *plan.Options) { o.State = plan.StateHash },
		"denied": func(o *plan.Options) { o.State, o.Testing.NoStorage = plan.StateTask, true },
	} {
		t.Run(name, func(t *testing.T) { deadThreads(t, build, change) })
	}
}

func deadThreads(t *testing.T, build testutil.Builder, change func(o *plan.Options)) {
	child := testutil.Spawn(t, build(t, "threads_exit"), "10")
	child.Ready()
	states := 0
	r := watched(t, child.PID, change, func(r *recording, rec *trace.Record) {
		var state object.ProbeThread
		if rec.Kind == trace.KindCall && r.tracer.kernel.programs.ThreadsByTid.Lookup(uint32(rec.TID), &state) == nil {
			states++
		}
	})
	child.Go()
	report := child.Report()
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
	r.done <- nil // for end, which receives it
	for _, tid := range report.TIDs {
		var state object.ProbeThread
		if err := r.tracer.kernel.programs.ThreadsByTid.Lookup(uint32(tid), &state); !errors.Is(err, ebpf.ErrKeyNotExist) {
			t.Errorf("thread %d has ended, but: %v", tid, err)
		}
	}
	if states == 0 {
		t.Error("no thread ever had its state in the hash")
	}
	compare(t, r.end(), report)
	r.whole()
}

// Other threads reuse addresses that a realloc gives up at once: no address may be live
// twice, in whatever order the rings are read.
func TestReallocRace(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, reallocRace)
}

func reallocRace(t *testing.T, build testutil.Builder) {
	for _, buffer := range []plan.Buffer{plan.BufferRing, plan.BufferPerf} {
		_, report, records := traceRun(t, func(o *plan.Options) { o.Buffer = buffer }, build(t, "realloc_race"), "3", "300", "log")
		compare(t, records, report)
		live := map[uint64]bool{}
		last := int64(0)
		for _, rec := range ofKind(records, trace.KindCall) {
			c := &rec.Call
			if c.Op == trace.OpFree || c.Op == trace.OpMove {
				old := c.OldID
				if c.Op == trace.OpFree {
					old = c.ID
				}
				if !live[old] {
					t.Fatalf("call %d, %s %s: %#x was not live", c.Seq, c.Op, c.Function, old)
				}
				delete(live, old)
			}
			if c.Op != trace.OpFree {
				if live[c.ID] {
					t.Fatalf("call %d, %s %s: %#x was live", c.Seq, c.Op, c.Function, c.ID)
				}
				live[c.ID] = true
			}
			if rec.Time < last {
				t.Fatalf("call %d: time goes back by %d ns", c.Seq, last-rec.Time)
			}
			last = rec.Time
		}
		if len(live) != 0 {
			t.Errorf("%d blocks are left", len(live))
		}
	}
}

// An allocation of C++ counts once, as the malloc below it, and a program that catches
// bad_alloc continues.
func TestCxx(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, cxx)
}

func cxx(t *testing.T, build testutil.Builder) {
	_, report, records := traceRun(t, nil, build(t, "cxx"), "50")
	if report.Caught == 0 {
		t.Fatal("the program has caught nothing")
	}
	live := map[uint64]bool{}
	for _, rec := range ofKind(records, trace.KindCall) {
		live[rec.Call.ID] = rec.Call.Op != trace.OpFree
	}
	for addr, c := range report.Live() {
		if !live[addr] {
			t.Errorf("block %#x of %d bytes is left but not in the trace", addr, c.Size)
		}
	}
	// Each new in the log is one call in the trace, at the same address, in the same
	// order.
	tid := report.TIDs[0]
	trail := calls(records)[tid]
	i := 0
	for _, c := range report.Done() {
		for i < len(trail) && !(trail[i].Ptr == c.Ptr && trail[i].Old == c.Old) {
			i++
		}
		if i == len(trail) {
			t.Fatalf("no call of the trace for %s", describe(c))
		}
		i++
	}
}

// A library that is mapped for a millisecond appears in order: its mapping before the
// calls from it, its end after them.
func TestShortLivedLibrary(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, shortLivedLibrary)
}

func shortLivedLibrary(t *testing.T, build testutil.Builder) {
	const rounds = 5
	plug := build(t, "plug", "-shared", "-fPIC")
	_, report, records := traceRun(t, nil, build(t, "dl"), plug, "5")
	var mapped *trace.Mapping
	mappings, unmappings, inside := 0, 0, 0
	leaks := map[uint64]bool{}
	for _, c := range report.Done() {
		leaks[c.Ptr] = true
	}
	for _, rec := range records {
		switch rec.Kind {
		case trace.KindMapping:
			if filepath.Base(rec.Mapping.Path) == filepath.Base(plug) {
				m := rec.Mapping
				mapped = &m
				mappings++
			}
		case trace.KindUnmapping:
			if filepath.Base(rec.Mapping.Path) == filepath.Base(plug) {
				mapped = nil
				unmappings++
			}
		case trace.KindCall:
			if rec.Call.Op != trace.OpAlloc || !leaks[rec.Call.ID] || rec.Call.Size < 100 || rec.Call.Size >= 100+rounds {
				continue
			}
			caller := rec.Call.Stack.Frames[0]
			if mapped == nil || caller < mapped.Start || caller >= mapped.End {
				t.Errorf("call %d from %#x: the library is at %+v", rec.Call.Seq, caller, mapped)
			}
			inside++
		}
	}
	// On arm64 the loader maps the whole library and then unmaps what lies between its
	// segments, 64 KiB apart. A reading in between finds another mapping.
	if mappings < rounds || mappings > rounds && runtime.GOARCH != "arm64" || inside != rounds {
		t.Errorf("%d mappings and %d calls; want %d of each", mappings, inside, rounds)
	}
	// The end of the last mapping may coincide with the end of the process.
	if unmappings < mappings-1 || unmappings > mappings {
		t.Errorf("%d mappings ended, want %d", unmappings, mappings)
	}
}

// Executable mappings of which the dynamic loader does not know are in the trace.
func TestMmapExec(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, mmapExec)
}

func mmapExec(t *testing.T, build testutil.Builder) {
	file := build(t, "plug", "-shared", "-fPIC")
	_, report, records := traceRun(t, nil, build(t, "mmapexec"), file, "4")
	seen := map[uint64]int{}
	for _, rec := range ofKind(records, trace.KindMapping) {
		if filepath.Base(rec.Mapping.Path) == filepath.Base(file) {
			seen[rec.Mapping.Start]++
		}
	}
	total := 0
	for _, m := range report.Maps {
		total++
		if seen[m.Start] == 0 {
			t.Errorf("the mapping at %#x is not in the trace", m.Start)
		}
	}
	if total == 0 {
		t.Fatal("the program has mapped nothing")
	}
}

// However the process ends, the trace contains everything up to that moment.
func TestTargetEnds(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, targetEnds)
}

func targetEnds(t *testing.T, build testutil.Builder) {
	program := build(t, "crash")
	for how, code := range map[string]int{"segv": 128 + 11, "abort": 128 + 6, "kill": 128 + 9, "exit": 7} {
		t.Run(how, func(t *testing.T) {
			child := testutil.Spawn(t, program, how, "300")
			child.Ready()
			r := attachTo(t, child.PID, nil)
			child.Go()
			if got := child.Wait(); got != code {
				t.Errorf("exit code %d, want %d", got, code)
			}
			records := r.end()
			r.whole()
			n := 0
			for _, rec := range ofKind(records, trace.KindCall) {
				if rec.Call.Function == "malloc" && rec.Call.Size == 100 {
					n++
				}
			}
			if n != 300 {
				t.Errorf("%d calls in the trace, 300 made", n)
			}
			if last := records[len(records)-1]; last.Kind != trace.KindEnd {
				t.Errorf("the trace ends with a %s", last.Kind)
			}
			if exit := records[len(records)-2]; exit.Kind != trace.KindExit || !exit.Exit.Process {
				t.Errorf("the end of the process is not in the trace, but %s", exit.Kind)
			}
		})
	}
}

// A process that ends between the plan and the attachment: the error is that it ended.
func TestTargetEndsBeforeTheProbes(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "crash"), "kill", "300")
	child.Ready()
	p, err := plan.New(plan.Options{PID: child.PID, Depth: plan.DefaultDepth, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	child.Signal(unix.SIGKILL)
	child.Wait()
	tracer, err := Open(p)
	if err == nil {
		_ = tracer.Close()
	}
	if !errors.Is(err, ErrProcessEnded) {
		t.Errorf("attach: %v, want that the process ended", err)
	}
}

// Stop ends the trace, and the process continues, undisturbed and without probes.
func TestStop(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "2")
	child.Ready()
	r := attachTo(t, child.PID, nil)
	child.Go()
	r.tracer.Stop()
	// The programs must be off at once: the collector switches them off only when it gets
	// to it, and never if nothing reads its batches.
	var on uint32
	if err := r.tracer.kernel.programs.Enabled.Get(&on); err != nil || on != 0 {
		t.Errorf("after Stop the programs are still on (%d, %v)", on, err)
	}
	records := r.end()
	if last := records[len(records)-1]; last.Kind != trace.KindEnd {
		t.Errorf("the trace ends with a %s", last.Kind)
	}
	child.Go()
	child.Succeed()
	r.tracer.Stop() // Stop is allowed after the end
}
