package tracer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// linking is a way for a program to get its allocator.
type linking struct {
	flags   []string // compiler flags
	preload string   // path of a preloaded library
	kind    string   // kind of the allocator that serves malloc
}

// libraryFile returns the path of one of Debian's libraries. It skips the test in a
// virtual machine that was made without the library.
func libraryFile(t *testing.T, name string) string {
	t.Helper()
	if name != "libmemusage.so" { // glibc contains that one
		testutil.Extra(t, "other allocators")
	}
	all, _ := filepath.Glob("/usr/lib/" + multiarch() + "/" + name)
	if len(all) > 0 {
		return all[0]
	}
	if testutil.GuestLacks("rg") { // rg is installed together with the allocators
		t.Skipf("SKIPPED-GUEST: this virtual machine was made without %s (vmtest --userland)", name)
	}
	t.Fatalf("%s is not installed (make need-test-all installs it)", name)
	return ""
}

// linked returns the linker flag for one of Debian's libraries. The linker finds the
// library for this machine and for the other width. The test is skipped as in
// libraryFile.
func linked(t *testing.T, name string) string {
	t.Helper()
	libraryFile(t, name)
	return "-l:" + name
}

// multiarch returns Debian's name for the machine of the tests.
func multiarch() string {
	return map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu"
}

// linkings lists the ways by allocator and how the program gets it.
func linkings(t *testing.T) map[string]linking {
	file := func(name string) string { return libraryFile(t, name) }
	needed := func(name string) []string { return []string{"-Wl,--no-as-needed", linked(t, name)} }
	return map[string]linking{
		"glibc static":       {flags: []string{"-static"}, kind: "glibc"},
		"glibc static-pie":   {flags: []string{"-static-pie", "-fPIE"}, kind: "glibc"},
		"musl linked":        {flags: []string{testutil.Musl}, kind: "musl"},
		"musl static":        {flags: []string{testutil.Musl, "-static"}, kind: "musl"},
		"jemalloc preloaded": {preload: file("libjemalloc.so.2"), kind: "jemalloc"},
		"jemalloc linked":    {flags: needed("libjemalloc.so.2"), kind: "jemalloc"},
		"jemalloc inside":    {flags: []string{linked(t, "libjemalloc.a"), "-lm", "-ldl"}, kind: "jemalloc"},
		"tcmalloc preloaded": {preload: file("libtcmalloc_minimal.so.4"), kind: "tcmalloc"},
		"tcmalloc linked":    {flags: needed("libtcmalloc_minimal.so.4"), kind: "tcmalloc"},
		"tcmalloc inside":    {flags: []string{linked(t, "libtcmalloc_minimal.a"), "-lstdc++", "-lm"}, kind: "tcmalloc"},
		"tcmalloc static": {
			flags: []string{"-static", "-Wl,--whole-archive", linked(t, "libtcmalloc_minimal.a"), "-Wl,--no-whole-archive", "-lstdc++", "-lm"},
			kind:  "tcmalloc",
		},
		"mimalloc preloaded": {preload: file("libmimalloc.so.2.0"), kind: "mimalloc"},
		"mimalloc linked":    {flags: needed("libmimalloc.so.2.0"), kind: "mimalloc"},
	}
}

// For every allocator and every way to get it, the trace has each function and each call
// of eight threads as in the program's own log, and no call that the allocators make
// among themselves.
func TestAllocators(t *testing.T) {
	testutil.NeedBPF(t)
	for name, how := range linkings(t) {
		t.Run(name, func(t *testing.T) {
			every, alloc := testutil.Build(t, "every", how.flags...), testutil.Build(t, "alloc", how.flags...)
			r, report, records := tracePreloaded(t, how.preload, nil, every)
			compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
			if kind := serves(r.tracer.Plan(), "malloc").Kind; kind != how.kind {
				t.Errorf("malloc is that of %q, want %q", kind, how.kind)
			}
			if !testutil.Sweep(t) {
				return
			}
			r, report, records = tracePreloaded(t, how.preload, nil, alloc, "8", "500", "log")
			compare(t, records, report)
			if s := r.tracer.Stats(); s.LiveBlocks != 8 || s.Unmatched != 0 {
				t.Errorf("%d blocks live and %d frees unmatched, want 8 and 0", s.LiveBlocks, s.Unmatched)
			}
		})
	}
}

// The mechanisms of old kernels also know which allocator's function was called.
func TestAllocatorsByAddress(t *testing.T) {
	testutil.NeedBPF(t)
	how := linkings(t)["mimalloc preloaded"]
	_, report, records := traceLinked(t, &how, oldest, "every")
	compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
}

// Static programs of the other width are traced.
func TestStaticAllocator(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		_, report, records := traceRun(t, nil, build(t, "every", "-static"))
		compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
	})
}

// With a library that wraps the C library's allocator, a call counts once, whether the
// library jumps to the other function or calls it.
func TestWrappedAllocator(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		wrap, every, alloc := build(t, "wrap", "-shared", "-fPIC"), build(t, "every"), build(t, "alloc")
		execs := build(t, "exec")
		for name, change := range map[string]func(o *plan.Options){"best": nil, "oldest": oldest} {
			t.Run(name, func(t *testing.T) {
				r, report, records := tracePreloaded(t, wrap, change, every)
				compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
				if a := serves(r.tracer.Plan(), "malloc"); a.Path != wrap {
					t.Errorf("malloc is that of %s", a.Path)
				}
				_, report, records = tracePreloaded(t, wrap, change, alloc, "8", "500", "log")
				compare(t, records, report)
			})
		}
		// Calls of the new program count once even before the tracer has registered where
		// its code is.
		cmd := exec.Command(execs, "10", every)
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+wrap)
		execTraced(t, cmd, nil)
	})
}

// With several allocators in one program, those with a known prefix are traced along with
// malloc, and others by their names. The trace shows which one was called.
func TestPrefixedAllocators(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for name, test := range map[string]struct {
			choice []string
			seen   []string // prefixes
		}{
			"found":  {nil, []string{"", "je_"}},
			"chosen": {[]string{"prefix:own_"}, []string{"own_"}},
			"both":   {[]string{"prefix:own_", "prefix:je_", "glibc"}, []string{"", "je_", "own_"}},
		} {
			t.Run(name, func(t *testing.T) {
				_, report, records := traceRun(t, func(o *plan.Options) { o.Allocators = test.choice }, build(t, "prefixes"), "50")
				var want []testutil.Call
				inside := map[uint64]bool{} // blocks of allocators that are not traced, which they got from malloc
				for _, c := range report.Done() {
					prefix := c.Caller
					c.Caller, c.Function = "", prefix+c.Function
					switch {
					case slices.Contains(test.seen, prefix):
						want = append(want, c)
					case slices.Contains(test.seen, "") && c.Size >= 4096:
						// The call of malloc by the program's own allocator then counts
						// as a call of the program.
						inside[c.Ptr] = true
						head := 2 * uint64(8)
						want = append(want, testutil.Call{TID: c.TID, Op: c.Op, Function: "malloc", Ptr: c.Ptr - head, Size: c.Size + head})
					case inside[c.Old]:
						want = append(want, testutil.Call{TID: c.TID, Op: "free", Function: "free", Old: c.Old - 16})
					}
				}
				compare(t, records, &testutil.Report{Calls: want})
			})
		}
	})
}

// Functions with a prefix are traced along with the C library's, from one of Debian's
// libraries.
func TestAllocatorBehindLibc(t *testing.T) {
	testutil.NeedBPF(t)
	how := linking{flags: []string{"-Wl,--no-as-needed", "-lc", linked(t, "libmimalloc.so.2.0")}}
	r, report, records := traceLinked(t, &how, nil, "every")
	compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
	for _, a := range r.tracer.Plan().Memory.Allocators {
		wanted := map[string]bool{"glibc": true, "mimalloc (mi_)": true, "mimalloc": false}
		if traced, ok := wanted[a.Name()]; !ok || traced != a.Traced {
			t.Errorf("%s is traced: %v, because it %s", a.Name(), a.Traced, a.Why)
		}
	}
}

// For a stripped static program the error contains what is missing. It can be traced by
// addresses or with its debug file.
func TestStrippedAllocator(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		whole := build(t, "every", "-static", "-Wl,--build-id")
		dir := t.TempDir()
		stripped := filepath.Join(dir, "every")
		run(t, "objcopy", "--strip-all", whole, stripped)
		child := testutil.Spawn(t, stripped)
		child.Ready()
		if _, err := plan.New(plan.Options{PID: child.PID}); err == nil || !strings.Contains(err.Error(), "is static and has no symbols, build-id ") {
			t.Errorf("a program without names: %v", err)
		}
		symbols := symbolTable(t, whole)
		r := attachTo(t, child.PID, func(o *plan.Options) { o.Symbols = symbols })
		child.Go()
		report := child.Report()
		records := r.end()
		r.whole()
		compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})

		run(t, "objcopy", "--only-keep-debug", whole, filepath.Join(dir, "every.debug"))
		run(t, "objcopy", "--add-gnu-debuglink="+filepath.Join(dir, "every.debug"), stripped)
		_, report, records = traceRun(t, nil, stripped)
		compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
	})
}

// symbolTable returns the functions of an allocator as nm prints them.
func symbolTable(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	symbols := map[string]uint64{}
	for line := range bytes.Lines(run(t, "nm", path)) {
		f := strings.Fields(string(line))
		if len(f) == 3 && slices.ContainsFunc(plan.MemoryModule, func(r plan.Row) bool { return r.Symbol == f[2] }) {
			symbols[f[2]] = hexNumber(t, f[0])
		}
	}
	return symbols
}

// If a chosen allocator does not exist, the error contains it and the existing ones.
func TestAllocatorChoice(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "1")
	child.Ready()
	for name, test := range map[string]struct {
		change func(o *plan.Options)
		want   string
	}{
		"kind":    {func(o *plan.Options) { o.Allocators = []string{"jemalloc"} }, "has no allocator jemalloc: it has glibc"},
		"unknown": {func(o *plan.Options) { o.Allocators = []string{"hoard"} }, `unknown allocator "hoard"`},
		"prefix":  {func(o *plan.Options) { o.Allocators = []string{"prefix:own_"} }, "has no functions own_malloc and own_free: it has glibc"},
		"file":    {func(o *plan.Options) { o.Library = "/lib/libz.so" }, "has no allocator in /lib/libz.so: it has glibc"},
		"symbol":  {func(o *plan.Options) { o.Symbols = map[string]uint64{"x_malloc": 1} }, "has no functions x_malloc and x_free, whose addresses must both be given"},
		"name":    {func(o *plan.Options) { o.Symbols = map[string]uint64{"strlen": 1} }, `"strlen" is not a function of an allocator`},
	} {
		o := plan.Options{PID: child.PID}
		test.change(&o)
		p, err := plan.New(o)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if err == nil {
			p.Close()
		}
	}
}

// After an exec, another allocator may serve the process, before the C library that both
// programs have. Its calls are then reported as missing.
func TestExecOfAnotherAllocator(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "exec"), "10", testutil.Build(t, "exec", linked(t, "libjemalloc.a"), "-lm", "-ldl"),
		"20", testutil.Build(t, "exec"), "30", "/nowhere")
	child.Ready()
	var unprobed []bool // Unprobed at each call of malloc
	r := watched(t, child.PID, nil, func(r *recording, rec *trace.Record) {
		if rec.Kind == trace.KindExec || rec.Kind == trace.KindExit {
			unprobed = append(unprobed, r.tracer.stream.Stats.WasUnprobed)
		}
	})
	child.Go()
	child.Ready() // the second program
	child.Go()
	child.Ready() // the third program
	child.Go()
	child.Wait()
	r.end()
	if want := []bool{false, true}; len(unprobed) < 2 || !slices.Equal(unprobed[:2], want) {
		t.Errorf("unprobed before each exec: %v, want %v", unprobed, want)
	}
	if r.tracer.Stats().Unprobed {
		t.Error("the last program counts as unprobed, although it is like the first")
	}
}

// serves returns the allocator whose definition of a function the process calls.
func serves(p *plan.Plan, function string) plan.Allocator {
	for _, a := range p.Memory.Allocators {
		if slices.Contains(a.Serves, function) {
			return a
		}
	}
	return plan.Allocator{}
}

func traceLinked(t *testing.T, how *linking, change func(o *plan.Options), program string, args ...string) (*recording, *testutil.Report, []*trace.Record) {
	t.Helper()
	return tracePreloaded(t, how.preload, change, testutil.Build(t, program, how.flags...), args...)
}

// tracePreloaded is traceRun of a program with a preloaded library, unless preload is
// empty.
func tracePreloaded(t *testing.T, preload string, change func(o *plan.Options), program string, args ...string) (*recording, *testutil.Report, []*trace.Record) {
	t.Helper()
	cmd := exec.Command(program, args...)
	if preload != "" {
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+preload)
	}
	child := testutil.Start(t, cmd)
	child.Ready()
	r := attachTo(t, child.PID, change)
	child.Go()
	report := child.Report()
	records := r.end()
	r.whole()
	return r, report, records
}

// run runs a program and returns its output.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(installed(t, name), args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out
}

// hexNumber parses an address as nm prints it.
func hexNumber(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
