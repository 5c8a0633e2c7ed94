package tracer

import (
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/plan"
)

func withOperators(o *plan.Options) { o.Operators = plan.OperatorsAll }

// Each form of operator new and delete has its name and counts once. Calls that are not
// an operator's have no operator's name, whatever operator was called, or threw, before.
func TestOperatorsAreNamed(t *testing.T) {
	testutil.NeedBPF(t)
	all := ways(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		program := build(t, "operators")
		for _, way := range all {
			t.Run(way.name, func(t *testing.T) {
				_, report, records := traceRun(t, func(o *plan.Options) {
					way.set(o)
					withOperators(o)
				}, program, "5")
				compare(t, withoutExceptions(t, records, report), report)
			})
		}
		all = all[:1]
	})
}

// withoutExceptions leaves out the C++ runtime's blocks for exceptions, which the log
// does not contain: a malloc and a free each.
func withoutExceptions(t *testing.T, records []*trace.Record, report *testutil.Report) []*trace.Record {
	t.Helper()
	logged := map[uint64][]testutil.Call{} // allocations by address, in order
	for _, c := range report.Calls {
		if c.Op == "alloc" {
			logged[c.Ptr] = append(logged[c.Ptr], c)
		}
	}
	var kept []*trace.Record
	var allocs, frees uint64
	exceptions := map[uint64]bool{} // live blocks of exceptions
	for _, rec := range ofKind(records, trace.KindCall) {
		c := rec.Call
		next := logged[c.ID]
		switch {
		case c.Op == trace.OpAlloc && c.Function == "malloc" && (len(next) == 0 || next[0].Size != c.Size):
			exceptions[c.ID] = true
			allocs++
			continue
		case c.Op == trace.OpFree && exceptions[c.ID] && c.Function == "free":
			delete(exceptions, c.ID)
			frees++
			continue
		case c.Op == trace.OpAlloc && len(next) > 0:
			logged[c.ID] = slices.Delete(next, 0, 1)
		}
		kept = append(kept, rec)
	}
	if allocs != report.Thrown || frees != report.Thrown {
		t.Errorf("%d blocks of exceptions and %d frees of them, %d were thrown", allocs, frees, report.Thrown)
	}
	return kept
}

// Operators that the program itself defines also have their names. One that often makes
// no call does not give its name to a later call.
func TestOwnOperatorsAreNamed(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		_, report, records := traceRun(t, withOperators, build(t, "operators_own"), "50")
		compare(t, records, report)
	})
}

// In a statically linked program the operators are in the allocator's file.
func TestOperatorsOfStaticPrograms(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		_, report, records := traceRun(t, withOperators, build(t, "operators", "-static"), "5")
		compare(t, withoutExceptions(t, records, report), report)
	})
}

// Without names, calls have those of the functions below the operators, and nothing else
// differs.
func TestOperatorsWithoutNames(t *testing.T) {
	testutil.NeedBPF(t)
	_, report, records := traceRun(t, func(*plan.Options) {}, testutil.Build(t, "operators"), "5")
	for i := range report.Calls {
		switch c := &report.Calls[i]; {
		case c.Op == "free":
			c.Function = "free"
		case strings.Contains(c.Function, "align_val_t"):
			c.Function = "aligned_alloc"
		default:
			c.Function = "malloc"
		}
	}
	compare(t, withoutExceptions(t, records, report), report)
}

// The names are those that demanglers make of the symbols.
func TestOperatorNames(t *testing.T) {
	for _, word := range []uint64{4, 8} {
		rows := plan.OperatorModule(word)
		for i := range rows {
			if want, _ := symbol.Demangle(rows[i].Symbol); rows[i].Name != want {
				t.Errorf("%s is %q, want %q", rows[i].Symbol, rows[i].Name, want)
			}
		}
		if n := len(rows); n != 20 {
			t.Errorf("%d operators, the standard has 20", n)
		}
	}
}
