package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// callerWays returns options that find operators by the return address: without stacks, where
// events have it, with stacks, and with sites inside the functions.
func callerWays(t *testing.T) map[string]func(o *plan.Options) {
	t.Helper()
	ways := map[string]func(o *plan.Options){}
	sweep := testutil.Sweep(t)
	for _, depth := range []int{0, 8} {
		for _, paths := range []plan.Ways{plan.WaysReturns, plan.WaysPaths} {
			if !sweep && (depth > 0) != (paths == plan.WaysPaths) {
				continue
			}
			ways[fmt.Sprintf("depth=%d-ways=%d", depth, paths)] = func(o *plan.Options) {
				o.Operators, o.Depth, o.Ways = plan.OperatorsNew, depth, paths
			}
		}
	}
	return ways
}

// families gives the calls of a report the names that return addresses show: where one form of
// new leads to another, the form that calls the allocator. Frees have the allocator's name.
func families(report *testutil.Report, word string) {
	for i := range report.Calls {
		switch c := &report.Calls[i]; {
		case c.Op == "free":
			c.Function = "free"
		case strings.Contains(c.Function, "align_val_t"):
			c.Function = "operator new(" + word + ", std::align_val_t)"
		case strings.HasPrefix(c.Function, "operator new"):
			c.Function = "operator new(" + word + ")"
		}
	}
}

// Without probes on operators, each block of libstdc++'s has the name of its family. Blocks of
// malloc, calls of which follow calls of operators from the same frame, have no operator's name.
// The blocks are those of the program's log.
func TestOperatorsByCaller(t *testing.T) {
	testutil.NeedBPF(t)
	ways := callerWays(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for _, static := range []bool{false, true} {
			var flags []string
			if static {
				flags = []string{"-static"}
			}
			program := build(t, "operators", flags...)
			for name, way := range ways {
				t.Run(fmt.Sprintf("%s-static=%v", name, static), func(t *testing.T) {
					r, report, records := traceRun(t, way, program, "5")
					families(report, wordName(r))
					compare(t, withoutExceptions(t, records, report), report)
					if n := r.tracer.Plan().Memory.Operators; len(n) != 0 {
						t.Errorf("%d operators have probes", len(n))
					}
				})
			}
		}
	})
}

// wordName returns C++'s name for the type of sizes in the traced program.
func wordName(r *recording) string {
	if r.tracer.Plan().Target.Narrow() {
		return "unsigned int"
	}
	return "unsigned long"
}

// Operators that the program itself defines: one that calls malloc gives its name, one that
// jumps to malloc cannot be seen.
func TestOwnOperatorsByCaller(t *testing.T) {
	testutil.NeedBPF(t)
	ways := callerWays(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		program := build(t, "operators_own")
		for name, way := range ways {
			t.Run(name, func(t *testing.T) {
				_, report, records := traceRun(t, way, program, "50")
				for i := range report.Calls {
					switch c := &report.Calls[i]; {
					case c.Op == "free":
						c.Function = "free"
					case strings.Contains(c.Function, "nothrow"):
						c.Function = "malloc"
					}
				}
				compare(t, records, report)
			})
		}
	})
}

// Whatever allocator defines the operators, the trace has the blocks of the program's log.
func TestOperatorsByCallerOfAllocators(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "operators")
	libraries := map[string]string{
		testutil.Build(t, "fastalloc", "-shared", "-fPIC"):      "1",
		testutil.Build(t, "operators_wrap", "-shared", "-fPIC"): "1",
	}
	if testutil.Sweep(t) {
		for _, path := range allocatorLibraries(t) {
			libraries[path] = "3"
			if strings.Contains(path, "mimalloc") {
				libraries[path] = "7" // its operators end the program
			}
		}
	}
	for library, whose := range libraries {
		t.Run(filepath.Base(library), func(t *testing.T) {
			cmd := exec.Command(program, "5", whose)
			cmd.Env = append(os.Environ(), "LD_PRELOAD="+library)
			child := testutil.Start(t, cmd)
			child.Ready()
			r := attachTo(t, child.PID, func(o *plan.Options) { o.Operators = plan.OperatorsNew })
			child.Go()
			report := child.Report()
			records := withoutExceptions(t, r.end(), report)
			r.whole()
			for _, rec := range records {
				rec.Call.Function = rec.Call.Op.String()
			}
			for i := range report.Calls {
				report.Calls[i].Function = report.Calls[i].Op
			}
			compare(t, records, report)
		})
	}
}

// With operators that are found by the return address, a plan attaches nothing more than without
// names.
func TestOperatorsByCallerNeedNoProbes(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "operators")
	hits := func(which plan.Operators) uint64 {
		child := testutil.Spawn(t, program, "5")
		child.Ready()
		r := attachTo(t, child.PID, func(o *plan.Options) { o.Operators = which })
		child.Go()
		child.Report()
		h, err := r.tracer.Hits()
		if err != nil {
			t.Fatal(err)
		}
		if len(ofKind(r.end(), trace.KindCall)) == 0 {
			t.Fatal("no calls recorded")
		}
		return h.Entries + h.Returns
	}
	none, byCaller, all := hits(plan.OperatorsNone), hits(plan.OperatorsNew), hits(plan.OperatorsAll)
	if byCaller != none || all <= none {
		t.Errorf("%d probes were hit without names, %d by callers, %d by probes", none, byCaller, all)
	}
}

// A library that brings C++ along while the process is traced has its names, too.
func TestOperatorsOfLateLibraries(t *testing.T) {
	testutil.NeedBPF(t)
	const rounds = 5
	plug := testutil.Build(t, "plug_cxx", "-shared", "-fPIC")
	_, report, records := traceRun(t, func(o *plan.Options) { o.Operators = plan.OperatorsNew },
		testutil.Build(t, "dl"), plug, strconv.Itoa(rounds))
	var want []testutil.Call
	for _, c := range report.Calls {
		c.Function = "operator new(unsigned long)"
		want = append(want, c)
	}
	var got []testutil.Call
	for _, all := range calls(records) {
		got = append(got, slices.DeleteFunc(all, func(c testutil.Call) bool { return !strings.HasPrefix(c.Function, "operator") })...)
	}
	if len(want) != rounds || !slices.Equal(got, want) {
		t.Errorf("calls of operators\n%+v\nwant\n%+v", got, want)
	}
}
