package result

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Failures writes what failed in a run, with all output of these tests.
func Failures(w io.Writer, r *Run) {
	for _, t := range r.Tests {
		if t.Status == Failed {
			fmt.Fprintf(w, "--- FAIL on %s: %s %s (%.2fs)\n%s", r.name(), t.Package, t.title(), t.Seconds, printable(t.Output))
		}
	}
	if r.Broken != "" {
		fmt.Fprintf(w, "--- FAIL on %s: %s\n", r.name(), r.Broken)
	}
}

// Skips writes which tests were skipped in a run, by reason.
func Skips(w io.Writer, r *Run) {
	var reasons []string
	tests := make(map[string][]string)
	for _, t := range r.Tests {
		if t.Status != Skipped {
			continue
		}
		why := t.Reason()
		if tests[why] == nil {
			reasons = append(reasons, why)
		}
		tests[why] = append(tests[why], t.Package[strings.LastIndexByte(t.Package, '/')+1:]+"."+t.Name)
	}
	for _, why := range reasons {
		fmt.Fprintf(w, "*** SKIPPED on %s: %s\n***     %s\n", r.name(), why, strings.Join(tests[why], " "))
	}
	if r.Missing != "" {
		fmt.Fprintf(w, "*** SKIPPED: %s did not run: %s ***\n", r.name(), r.Missing)
	}
}

// Limits of the list of slowest tests of a run.
const (
	slowest = 12
	slow    = 20 // seconds
)

// Slow writes which tests of a run took longest.
func Slow(w io.Writer, r *Run) {
	var all []*Test
	for _, t := range r.Tests {
		if t.Seconds >= slow && t.Name != "" && !strings.Contains(t.Name, "/") {
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b *Test) int { return cmp.Compare(b.Seconds, a.Seconds) })
	var words []string
	for _, t := range all[:min(len(all), slowest)] {
		words = append(words, fmt.Sprintf("%s %.0f s", t.Name, t.Seconds))
	}
	if len(words) > 0 {
		fmt.Fprintf(w, "slowest on %s: %s\n", r.name(), strings.Join(words, ", "))
	}
}

// Table writes a line for each run.
func Table(w io.Writer, runs []*Run) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "kernel\tarch\tversion\tby\tpassed\tfailed\tskipped\tseconds\t")
	for _, r := range runs {
		verdict := "ok"
		switch {
		case !r.Good():
			verdict = "FAILED"
		case r.Missing != "":
			verdict = "NOT RUN"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%.0f\t%s\n", r.Title, r.Arch, cmp.Or(r.Version, "-"), cmp.Or(r.Backend, "-"),
			r.Count(Passed), r.Count(Failed), r.Count(Skipped), r.Seconds, verdict)
	}
	return t.Flush()
}
