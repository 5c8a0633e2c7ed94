package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording"
)

// Limits of a budget, in percent.
const (
	leastBudget = 0.1
	mostBudget  = 100
)

// budgetFormat is the format of a recording in windows, unless another is named.
const budgetFormat = "jsonl"

// budgetFlag is the value of --budget: a share of processor time.
type budgetFlag float64

// Set parses a percentage, with or without its sign.
func (b *budgetFlag) Set(text string) error {
	x, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(x >= leastBudget && x <= mostBudget) {
		return &flags.ValueError{Wrong: "is not a budget", Write: fmt.Sprintf("a percentage from %v to %v, as 1%%", leastBudget, mostBudget)}
	}
	*b = budgetFlag(x / 100)
	return nil
}

// String returns the percentage, or "" for none.
func (b *budgetFlag) String() string {
	if b == nil || *b == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(*b), 'g', 4, 64) + "%"
}

// Type is the name of the value in help texts that give none.
func (b *budgetFlag) Type() string { return "PERCENT" }

// checkBudget returns an error if --budget does not go with other flags.
func (l *limitFlags) checkBudget(c *config) error {
	if l.budget == 0 {
		return nil
	}
	const why = "--budget records in windows, and "
	switch f := c.format.name; {
	case l.maxRate > 0:
		return errors.New(why + "--max-rate pauses in another way: name one of them")
	case c.dotnet.on:
		return errors.New(why + "--dotnet records without them: name one of the two")
	case c.allocators.minSize > 0:
		return errors.New(why + "--min-size needs to know all live blocks: name one of them")
	case c.allocators.heapGrowth, c.allocators.heapInfo:
		return errors.New(why + "--heap-growth and --heap-info describe the whole heap: leave them out")
	case c.output.snapshots.Every > 0:
		return errors.New(why + "--snapshot needs to know all live blocks: name one of them")
	case f != budgetFormat && f != "nettrace":
		return fmt.Errorf("%s--format %s has no place for them: leave --format out for %s, or write nettrace", why, f, budgetFormat)
	}
	return nil
}

// budgetSummary prints what a recording with a budget has cost, and what its windows stand for.
func budgetSummary(w io.Writer, s *recording.Summary) {
	c, e := s.Estimates.Cost(), s.Estimates
	if c == nil {
		return
	}
	fmt.Fprintf(w, "  windows: %d, the longest %v; they stand for %v of the recording\n",
		e.Summary().Windows, rounded(c.Longest), rounded(c.Covered))
	fmt.Fprintf(w, "  budget: %s of its CPU time with a budget of %s; the worst 10 s: %s; intervals above the budget: %s\n",
		percent(c.Share()), percent(float64(c.Budget)/1e6), percent(float64(c.Worst)/1e6), percent(float64(c.Over)/1e6))
	fmt.Fprintf(w, "  estimated for all of its time: %s calls, %s allocations of %s bytes\n", e.Calls().Text(), e.Allocations().Text(), e.Bytes().Text())
	fmt.Fprintf(w, "  live blocks and leaks are not known: windows miss frees; use -e growth\n")
}

// percent returns a share as text.
func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) + " %" }

// rounded returns a time in ns as text.
func rounded(ns int64) string {
	d := time.Duration(ns)
	if d > time.Second {
		return printable.Text(d.Round(10 * time.Millisecond).String())
	}
	return printable.Text(d.Round(100 * time.Microsecond).String())
}
