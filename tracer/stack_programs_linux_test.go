package tracer

import (
	"fmt"
	"strconv"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
)

// stackPrograms are the programs that allocate below frames of every shape, in four
// threads, and log each call.
var stackPrograms = []struct {
	name, rounds string
	scope        scope
	flags        []string
}{
	{"stacks", "150", allCalls, nil},
	{"stacks", "150", ownCalls, []string{"-DSTACKLOG_DIRECT"}},
	{"stacks_cxx", "50", allCalls, nil},
}

// Each stack, from tables alone, is the one that the program finds itself, whatever the
// frames between: callbacks of libraries, signal handlers, the dynamic loader,
// exceptions.
func TestStacksAreExact(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, stacksAreExact)
}

func stacksAreExact(t *testing.T, build testutil.Builder) {
	total := 0
	for i, p := range stackPrograms {
		program := build(t, p.name, append([]string{testutil.OmitFramePointers}, p.flags...)...)
		for _, way := range []plan.Unwind{plan.UnwindEH, plan.UnwindAuto} {
			t.Run(fmt.Sprintf("%s-%d-%s", p.name, i, way), func(t *testing.T) {
				r := tracedStacks(t, byTables(way, nil), program, p.rounds, "4")
				n := r.exact(p.scope)
				t.Logf("%d stacks compared", n)
				total += n
				s := r.tracer.Stats()
				if complete := s.Stacks[trace.StackComplete]; complete+uint64(r.thunks) < uint64(n) || r.thunks == 0 && s.FramePointer != [5]uint64{} {
					t.Errorf("the summary counts %d complete stacks, %d by frame pointers", complete, s.FramePointer)
				}
			})
		}
	}
	if total < 100000 && !t.Failed() {
		t.Errorf("%d stacks were compared, want 100000", total)
	}
}

// 32-bit programs have very different code when they are linked at fixed addresses, keep
// frame pointers in addition to tables, or are not optimised.
func TestStacksOfBuildsFor32Bit(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Need32Bit(t)
	for _, test := range []struct {
		name, program string
		flags         []string
	}{
		{"fixed", "stacks", []string{testutil.OmitFramePointers, "-no-pie"}},
		{"fixed", "stacks_cxx", []string{testutil.OmitFramePointers, "-no-pie"}},
		{"frame-pointers", "stacks", []string{"-fno-omit-frame-pointer"}},
		{"unoptimised", "stacks", []string{"-O0"}},
	} {
		t.Run(test.name+"-"+test.program, func(t *testing.T) {
			program := testutil.Build32(t, test.program, test.flags...)
			tracedStacks(t, byTables(plan.UnwindEH, nil), program, "20", "3").exact(allCalls)
		})
	}
}

// Every mechanism, place of state and buffer, and the stacks of frees.
func TestStacksOfEveryVariant(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, stacksOfEveryVariant)
}

func stacksOfEveryVariant(t *testing.T, build testutil.Builder) {
	variants := []struct {
		name   string
		frees  bool
		change func(o *plan.Options)
	}{
		{"frees", true, nil},
		{"perf-events", false, func(o *plan.Options) { o.Mechanism = host.MechanismPerf }},
		{"hash", false, func(o *plan.Options) { o.State = plan.StateHash }},
		{"sites-by-address", true, func(o *plan.Options) { o.Sites = plan.SitesAddress }},
		{"perf-buffer", false, func(o *plan.Options) { o.Buffer = plan.BufferPerf }},
		{"all", true, func(o *plan.Options) {
			o.Mechanism, o.State, o.Buffer = host.MechanismPerf, plan.StateHash, plan.BufferPerf
		}},
		{"oldest", true, oldest},
		{"bounded", true, func(o *plan.Options) { o.Bounded = true }},
		{"no-stack-cache", true, func(o *plan.Options) { o.Testing.NoStackCache = true }},
		{"deepest-limit", true, func(o *plan.Options) { o.Depth = plan.MaxDepth }},
	}
	sweep := testutil.Sweep(t)
	for i, p := range stackPrograms {
		program := build(t, p.name, append([]string{testutil.OmitFramePointers}, p.flags...)...)
		for j, v := range variants {
			if !sweep && (i+j)%len(stackPrograms) != 0 {
				continue // one program for each variant
			}
			t.Run(p.name+"-"+v.name, func(t *testing.T) {
				r := tracedStacks(t, byTables(plan.UnwindEH, func(o *plan.Options) {
					o.BacktraceAll = v.frees
					if v.change != nil {
						v.change(o)
					}
				}), program, "10", "2")
				if n := r.exact(p.scope); v.frees && n < len(r.log) {
					t.Errorf("%d stacks for %d calls", n, len(r.log))
				}
			})
		}
	}
}

// A depth limit truncates a stack and marks it; the rest is correct.
func TestStacksAreCutAtTheLimit(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, stacksAreCutAtTheLimit)
}

func stacksAreCutAtTheLimit(t *testing.T, build testutil.Builder) {
	program := build(t, "stacks", testutil.OmitFramePointers)
	for _, depth := range []int{1, 2, 8, 13} {
		t.Run(strconv.Itoa(depth), func(t *testing.T) {
			r := tracedStacks(t, byTables(plan.UnwindEH, func(o *plan.Options) { o.Depth = depth }), program, "10", "2")
			r.cut(depth)
		})
	}
}

// cut checks stacks that were recorded with a depth limit.
func (r *stackRun) cut(depth int) {
	r.t.Helper()
	f := faults{r: r}
	cut := 0
	r.match(allCalls, func(rec *trace.Record, logged []uint64) {
		if f.seen++; r.inThunk(logged) {
			return
		}
		want := trace.StackComplete
		if len(logged) > depth {
			logged, want = logged[:depth], trace.StackTruncated
			cut++
		}
		if diff := r.diff(rec.Call.Stack.Frames, logged); diff != "" || rec.Call.Stack.End != want {
			f.is(rec, fmt.Sprintf("want %s\n%s", want, diff))
		}
	})
	f.report()
	if cut == 0 {
		r.t.Errorf("no stack is deeper than %d", depth)
	}
}

// Stacks as deep as the largest limit, one frame less and one more.
func TestDeepStacks(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, eachDeepStacks)
}

func eachDeepStacks(t *testing.T, build testutil.Builder) {
	for _, bounded := range []bool{false, true} {
		t.Run(fmt.Sprintf("bounded=%v", bounded), func(t *testing.T) { deepStacks(t, build, bounded) })
	}
}

func deepStacks(t *testing.T, build testutil.Builder, bounded bool) {
	program := build(t, "stacks", testutil.OmitFramePointers)
	deep := func(n, limit int) *stackRun {
		return tracedStacks(t, byTables(plan.UnwindEH, func(o *plan.Options) { o.Depth, o.Bounded = limit, bounded }), program, "deep", strconv.Itoa(n))
	}
	first := deep(100, plan.MaxDepth)
	first.exact(allCalls)
	if t.Failed() {
		return
	}
	more := len(first.log[0].Frames) - 100 // number of frames in addition to the nested ones
	limits := []int{plan.DefaultDepth, plan.MaxBounded}
	if !first.tracer.Plan().Mechanisms.Bounded {
		limits = append(limits, 200, plan.MaxDepth)
	}
	if !testutil.Sweep(t) {
		limits = limits[len(limits)-1:]
	}
	for _, limit := range limits {
		for _, depth := range []int{limit - 1, limit} {
			r := deep(depth-more, limit)
			r.exact(allCalls)
			if n := len(r.log[0].Frames); n != depth {
				t.Errorf("the program made %d frames instead of %d", n, depth)
			}
		}
		for _, depth := range []int{limit + 1, limit + 300} {
			deep(depth-more, limit).cut(limit)
		}
	}
}

// While the dynamic loader binds a function, a register that the BPF programs do not
// follow leads to the caller. Such stacks are marked.
func TestStacksDuringLazyBinding(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, stacksDuringLazyBinding)
}

func stacksDuringLazyBinding(t *testing.T, build testutil.Builder) {
	program := build(t, "stacks", testutil.OmitFramePointers, "-Wl,-z,lazy")
	r := tracedStacks(t, byTables(plan.UnwindEH, nil), program, "bind", "1")
	complete := 0
	n := r.honest(allCalls, func(_ *trace.Record, ok bool) {
		if ok {
			complete++
		}
	})
	t.Logf("%d of %d stacks are complete", complete, n)
}

// The Go unwinder, which knows all registers and expressions, finds the same stacks as
// the BPF programs.
func TestStacksAreVerified(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, stacksAreVerified)
}

func stacksAreVerified(t *testing.T, build testutil.Builder) {
	var verified uint64
	for _, p := range stackPrograms {
		program := build(t, p.name, append([]string{testutil.OmitFramePointers}, p.flags...)...)
		for _, every := range []int{1, 7} {
			t.Run(fmt.Sprintf("%s-%d", p.name, every), func(t *testing.T) {
				r := tracedStacks(t, byTables(plan.UnwindEH, func(o *plan.Options) { o.VerifyUnwind = every }), program, "10", "2")
				n := uint64(r.exact(p.scope))
				s := r.tracer.Stats()
				if s.VerifyDiffers != 0 {
					t.Errorf("%d of %d stacks differ", s.VerifyDiffers, s.Verified)
				}
				verified += s.Verified
				c := r.tracer.stream.Coverage()
				t.Logf("%d of %d stacks were verified; %+v, stale %v, pending %v", s.Verified, n, s.Work, c.Stale, c.Pending)
			})
		}
	}
	// Copies are made only while there is room in the ring, so their number in a single
	// run is not certain.
	if verified < 1000 && !t.Failed() {
		t.Errorf("%d stacks were verified in all", verified)
	}
}
