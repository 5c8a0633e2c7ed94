package tracer

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

// C++ programs with other allocators, whose files define the operators, too: with sites inside the
// functions the trace has the blocks of the program's log, as it has with entry and return, with
// operators by the return address and with probes on each of them.
func TestPathsOfOperators(t *testing.T) {
	testutil.NeedBPF(t)
	operators, threads := testutil.Build(t, "operators"), testutil.Build(t, "threads_cxx")
	libraries := []string{""} // that of C
	if testutil.Sweep(t) {
		libraries = append(libraries, allocatorLibraries(t)...)
	}
	for _, path := range libraries {
		whose := "3"
		switch {
		case path == "":
			whose = "0"
		case strings.Contains(path, "mimalloc"):
			whose = "7" // its operators end the program
		}
		for _, names := range []plan.Operators{plan.OperatorsNew, plan.OperatorsAll} {
			for _, ways := range []plan.Ways{plan.WaysReturns, plan.WaysPaths} {
				set := func(o *plan.Options) {
					o.Operators, o.Ways = names, ways
					if ways == plan.WaysPaths {
						o.VerifySites = 1
					}
				}
				t.Run(fmt.Sprintf("%s-operators=%d-ways=%d", filepath.Base(path), names, ways), func(t *testing.T) {
					t.Parallel() // the tests mostly wait
					r, report, records := tracePreloaded(t, path, set, operators, "20", whose)
					sameBlocks(t, withoutExceptions(t, records, report), report)
					checkSites(t, r, 0)
					r, report, records = tracePreloaded(t, path, set, threads, "20")
					sameBlocks(t, records, report)
					checkSites(t, r, 0)
				})
			}
		}
	}
}

// sameBlocks compares a trace with a report, call by call, except for the names of functions other
// than realloc.
func sameBlocks(t *testing.T, records []*trace.Record, report *testutil.Report) {
	t.Helper()
	const moves = "realloc"
	for _, rec := range ofKind(records, trace.KindCall) {
		if rec.Call.Function != moves {
			rec.Call.Function = rec.Call.Op.String()
		}
	}
	for i := range report.Calls {
		c := &report.Calls[i]
		c.Caller, c.Line = "", 0
		if c.Function != moves {
			c.Function = c.Op
		}
	}
	compare(t, records, report)
}
