package tracer

import (
	"path/filepath"
	"strconv"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// byPaths returns options that record calls inside the functions, and compare each of them with
// its entry and return.
func byPaths(set func(o *plan.Options)) func(o *plan.Options) {
	return func(o *plan.Options) {
		set(o)
		o.Ways, o.VerifySites = plan.WaysPaths, 1
	}
}

// checkSites fails the test unless at least n calls were compared, and none differs.
func checkSites(t *testing.T, r *recording, n uint64) {
	t.Helper()
	if w := r.tracer.Stats().Work; w.Compared < n || w.Differ != 0 {
		t.Errorf("%d calls compared, %d differ; want at least %d and 0", w.Compared, w.Differ, n)
	}
}

// Calls that are recorded inside malloc and calloc are those of the program's own log, for each
// mechanism, with one thread and with several.
func TestPathsOfEveryThread(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "alloc")
	sweep := testutil.Sweep(t)
	for i, way := range ways(t) {
		for _, threads := range []int{1, 8} {
			if !sweep && (i > 0 || threads == 1) {
				continue
			}
			t.Run(way.name+"-"+strconv.Itoa(threads), func(t *testing.T) {
				r, report, records := traceRun(t, byPaths(way.set), program, strconv.Itoa(threads), strconv.Itoa(2000/threads), "log")
				compare(t, records, report)
				checkSites(t, r, 500)
				if s := r.tracer.Stats(); s.LiveBlocks != threads || s.Unmatched != 0 {
					t.Errorf("%d blocks live and %d frees unmatched, want %d and 0", s.LiveBlocks, s.Unmatched, threads)
				}
			})
		}
	}
}

// Each function with its failures and corner cases.
func TestPathsOfEveryFunction(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "every")
	for _, args := range []bool{false, true} {
		t.Run("args="+strconv.FormatBool(args), func(t *testing.T) {
			r, report, records := traceRun(t, byPaths(func(o *plan.Options) { o.Args = args }), program)
			compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
			checkSites(t, r, 1)
		})
	}
}

// A plan names the functions that have sites inside.
func TestPathsArePlanned(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "alloc"), "1", "1")
	child.Ready()
	p, err := plan.New(plan.Options{PID: child.PID, Ways: plan.WaysPaths})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i := range p.Memory.Functions {
		f := &p.Memory.Functions[i]
		sites, why := f.Inside()
		t.Logf("%s of %s: %d sites, %v", f.Name, filepath.Base(f.Probe.Path), sites, why)
		if f.Name == "malloc" && sites == 0 {
			t.Errorf("malloc has no sites: %v", why)
		}
	}
}

// Calls in signal handlers, each of which interrupts a realloc, are all recorded: none of them is
// open, and so none is lost. Those reallocs are lost, from the ninth on or because they never return.
func TestPathsInHandlers(t *testing.T) {
	testutil.NeedBPF(t)
	const n, places = 20, 8
	report, all, s := leaving(t, testutil.Build, byPaths(func(*plan.Options) {}), "nest", n)
	compare(t, withoutFreesOf(all, leftBlocks(report)), report)
	checkLost(t, &s, map[order.Loss]int{order.LossMissedReturn: places, order.LossNesting: n - places})
}

// Stacks begin with the caller of malloc and are those that the program finds itself, from tables
// and by frame pointers, and those that copies of the stack lead to.
func TestPathsStacks(t *testing.T) {
	testutil.NeedBPF(t)
	tables, pointers := testutil.Build(t, "stacks", testutil.OmitFramePointers), testutil.Build(t, "leak")
	check := func(o *plan.Options) { o.Ways, o.VerifyUnwind, o.RingSize = plan.WaysPaths, 1, 16<<20 }
	r := tracedStacks(t, byTables(plan.UnwindEH, check), tables, "5", "4")
	n := r.exact(allCalls)
	s := r.tracer.Stats()
	t.Logf("%d stacks compared, %d checked", n, s.Verified)
	if n == 0 || s.Verified == 0 || s.VerifyDiffers != 0 {
		t.Errorf("%d stacks compared, %d checked, of which %d differ", n, s.Verified, s.VerifyDiffers)
	}
	_, report, records := traceRun(t, func(o *plan.Options) { o.Ways, o.Unwind = plan.WaysPaths, plan.UnwindFP }, pointers)
	comparePointers(t, report, records)
}

// Other allocators, preloaded, linked and static, with what they do not record inside. Calls
// below another allocator count once.
func TestPathsOfAllocators(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Extra(t, "each allocator, preloaded, linked and static")
	change := byPaths(func(*plan.Options) {})
	wrap, plain := testutil.Build(t, "wrap", "-shared", "-fPIC"), testutil.Build(t, "alloc")
	t.Run("wrapped", func(t *testing.T) {
		_, report, records := tracePreloaded(t, wrap, change, plain, "8", "250", "log")
		compare(t, records, report)
	})
	all := linkings(t)
	for _, name := range []string{"jemalloc preloaded", "mimalloc preloaded", "glibc static-pie"} {
		how := all[name]
		t.Run(name, func(t *testing.T) {
			every, alloc := testutil.Build(t, "every", how.flags...), testutil.Build(t, "alloc", how.flags...)
			r, report, records := tracePreloaded(t, how.preload, change, every)
			compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
			checkSites(t, r, 0)
			for i := range r.tracer.Plan().Memory.Functions {
				f := &r.tracer.Plan().Memory.Functions[i]
				if sites, why := f.Inside(); f.Name == "malloc" {
					t.Logf("malloc of %s: %d sites, %v", filepath.Base(f.Probe.Path), sites, why)
				}
			}
			if how.preload == "" {
				return
			}
			r, report, records = tracePreloaded(t, how.preload, change, alloc, "8", "250", "log")
			compare(t, records, report)
			checkSites(t, r, 0)
		})
	}
}
