package main

import (
	"fmt"
	"strconv"
	"time"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/trace"
)

// budgetReport is about a recording in windows. Times are nanoseconds.
type budgetReport struct {
	estimate.Summary
	Calls       estimate.Estimate  `json:"calls"`
	Allocations estimate.Estimate  `json:"allocations"`
	Bytes       estimate.Estimate  `json:"bytes"`
	Functions   []functionEstimate `json:"functions"`
}

// costReport is what recording cost the process. Shares are those of processor time, and times
// nanoseconds.
type costReport struct {
	Used   int64   `json:"used"`
	Added  int64   `json:"added"`
	Tracer int64   `json:"tracer"`
	Factor float64 `json:"factor"`         // how many times as much processor time as without recording
	Low    float64 `json:"low"`            // Factor is at least this
	High   float64 `json:"high,omitempty"` // and at most this; left out if only Low is known
	// Of a recording in windows:
	Budget  float64 `json:"budget,omitempty"`
	Worst   float64 `json:"worst,omitempty"`
	Over    float64 `json:"over,omitempty"`
	Longest int64   `json:"longest_window,omitempty"`

	cost *trace.Cost
}

// functionEstimate is what is known of the calls of a function.
type functionEstimate struct {
	Function string            `json:"function"`
	Calls    estimate.Estimate `json:"calls"`
	Bytes    estimate.Estimate `json:"bytes"`
}

func newCostReport(c *trace.Cost) *costReport {
	if c == nil {
		return nil
	}
	times, low, high, _ := c.Slower()
	return &costReport{
		Used: c.Used, Added: c.Added, Tracer: c.Tracer, Factor: times, Low: low, High: high, Longest: c.Longest, cost: c,
		Budget: float64(c.Budget) / 1e6, Worst: float64(c.Worst) / 1e6, Over: float64(c.Over) / 1e6,
	}
}

// windowSums are estimates for the whole recording.
type windowSums struct {
	estimate.Totals
	functions map[string]*functionSums
}

type functionSums struct{ calls, bytes estimate.Sum }

// record adds a record of the trace.
func (s *windowSums) record(r *trace.Record) {
	s.Record(r)
	if r.Kind != trace.KindCall || !s.Any() {
		return
	}
	f := s.functions[r.Call.Function]
	if f == nil {
		f = &functionSums{}
		s.functions[r.Call.Function] = f
	}
	f.calls.Add(&s.Windows, 1)
	f.bytes.Add(&s.Windows, float64(r.Call.Size))
}

// forWindows adds the estimates, and removes what windows do not show: blocks that live.
func (r *report) forWindows(s *windowSums) {
	b := &budgetReport{Summary: s.Summary(), Calls: s.Calls(), Allocations: s.Allocations(), Bytes: s.Bytes()}
	for _, f := range r.Functions {
		if x := s.functions[f.Function]; x != nil {
			b.Functions = append(b.Functions, functionEstimate{f.Function, x.calls.Estimate(&s.Windows), x.bytes.Estimate(&s.Windows)})
		}
	}
	r.Budget = b
	r.Unmatched, r.Replaced = 0, 0
	for i := range r.Resources {
		x := &r.Resources[i]
		x.Live, x.Peak, x.Unknown, x.Temporary = amount{}, amount{}, amount{}, amount{}
	}
	if r.RSS != nil {
		r.RSS.Elsewhere, r.RSS.Verdict = false, ""
	}
}

// write prints the estimates. c may be nil.
func (b *budgetReport) write(p *page, c *costReport) {
	p.line("windows", "%d, open for %v; they stand for %v. All figures but the estimates are of the windows alone",
		b.Windows, time.Duration(b.Open).Round(time.Millisecond), time.Duration(b.Covered).Round(time.Millisecond))
	if c != nil {
		p.line("budget", "%s", budgetText(c.cost))
	}
	label := "estimates:"
	for _, x := range []struct {
		of    string
		calls estimate.Estimate
		bytes estimate.Estimate
	}{{"all calls", b.Calls, estimate.Estimate{}}, {"allocations", b.Allocations, b.Bytes}} {
		writeEstimate(p, label, x.of, x.calls, x.bytes)
		label = ""
	}
	for i := range b.Functions {
		f := &b.Functions[i]
		writeEstimate(p, "", f.Function, f.Calls, f.Bytes)
	}
	p.line("live", "not known, since windows miss frees: rtrace-bpf -e growth records what grows")
}

// budgetText returns how well a recording stayed within its budget.
func budgetText(c *trace.Cost) string {
	share := func(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) + " %" }
	millionths := func(n uint64) string { return share(float64(n) / 1e6) }
	return fmt.Sprintf("%s of the process's CPU time with a budget of %s; the worst 10 s: %s; intervals above it: %s; longest window: %v",
		share(c.Share()), millionths(c.Budget), millionths(c.Worst), millionths(c.Over), time.Duration(c.Longest).Round(100*time.Microsecond))
}

func writeEstimate(p *page, label, of string, calls, bytes estimate.Estimate) {
	text := fmt.Sprintf("%-11s %s: %s calls", label, of, calls.Text())
	if bytes.Value > 0 {
		text += ", " + bytes.Text() + " bytes"
	}
	fmt.Fprintln(p, text)
}
