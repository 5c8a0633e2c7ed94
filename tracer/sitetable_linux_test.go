package tracer

import (
	"os"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// A probe site whose address within the page is not in the table is found by its
// distance. A call at a site that the table does not contain at all counts as lost.
func TestSitesByDistance(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "every"))
	child.Ready()
	r := attachTo(t, child.PID, func(o *plan.Options) { o.Sites = plan.SitesAddress })
	sites := r.tracer.kernel.programs.Sites
	for _, f := range r.tracer.Plan().Memory.Functions {
		if err := sites.Delete((f.Probe.Distance & (uint64(os.Getpagesize()) - 1)) << 3); err != nil {
			t.Logf("%s shares its address within the page: %v", f.Name, err)
			continue
		}
		if f.Name == "calloc" {
			continue // the table does not contain this site
		}
		if err := sites.Put(f.Probe.Distance<<3|plan.SiteDistance, f.Probe.Site); err != nil {
			t.Fatal(err)
		}
	}
	child.Go()
	report := child.Report()
	records := r.end()
	before := len(report.Calls)
	report.Calls = slices.DeleteFunc(report.Calls, func(c testutil.Call) bool { return c.Function == "calloc" })
	compare(t, canonical(records), &testutil.Report{Calls: canonicalCalls(report.Calls)})
	if lost, want := r.tracer.Stats().Lost[order.LossArgument], before-len(report.Calls); lost != uint64(want) || want == 0 {
		t.Errorf("%d lost, %d calls of calloc", lost, want)
	}
}
