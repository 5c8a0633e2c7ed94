package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// estimated returns the estimated calls of each function of a trace, and checks its windows.
func estimated(t *testing.T, path string) (all map[string]estimate.Estimate, cost *trace.Cost) {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var windows estimate.Windows
	sums := map[string]*estimate.Sum{}
	var last trace.Record
	for {
		var r trace.Record
		if err := in.ReadRecord(&r); err != nil {
			break
		}
		switch r.Kind {
		case trace.KindWindow:
			if w := r.Window; w.Used < last.Window.Used || w.Added < last.Window.Added || w.Weight > 0 && (w.Until <= r.Time || w.Doubt == 0) {
				t.Errorf("a window %+v at %d follows %+v", w, r.Time, last.Window)
			}
			last = r
		case trace.KindCall:
			if last.Kind == trace.KindNone {
				t.Errorf("a call before the first window")
			}
			if sums[r.Call.Function] == nil {
				sums[r.Call.Function] = &estimate.Sum{}
			}
			sums[r.Call.Function].Add(&windows, 1)
		case trace.KindLost:
			t.Errorf("lost: %+v", r.Lost)
		}
		if r.Kind != trace.KindCall {
			windows.Observe(&r)
		}
	}
	all = map[string]estimate.Estimate{}
	for f, s := range sums {
		all[f] = s.Estimate(&windows)
	}
	return all, windows.Cost()
}

// The estimates of a recording in windows are about as many calls as the program counts, for
// one that is always busy and for one that waits. Between windows no probe is in the process.
func TestBudget(t *testing.T) {
	testutil.NeedBPF(t)
	for name, args := range map[string][]string{
		"busy":     {"30000", "30000"},
		"requests": {"12800", "3000", "5000"},
	} {
		t.Run(name, func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, "rates"), args...)
			child.Ready()
			path := filepath.Join(t.TempDir(), "trace")
			r := start(t, child, "--budget", "20%", "-o", path)
			child.Go()
			func() {
				defer testutil.Unstuck(t, child.PID)()
				for len(testutil.CodeOf(t, child.PID).Changed) > 0 { // until the first window has closed
				}
			}()
			child.Succeed()
			r.ends(cli.OK)
			r.says("estimated for all of its time: ")
			var truth map[string]float64
			if err := json.Unmarshal(child.Output(), &truth); err != nil {
				t.Fatal(err)
			}
			all, cost := estimated(t, path)
			if cost == nil || cost.Used == 0 || cost.Added <= 0 || cost.Budget != 200_000 || cost.Covered == 0 || cost.Longest == 0 {
				t.Errorf("cost: %+v", cost)
			}
			if len(all) == 0 {
				t.Error("no calls")
			}
			for f, e := range all {
				// The interval of 95 % is left in one of 20 runs, twice its width hardly ever.
				// The time before the second stretch may be missing.
				low, high := e.Value-3*(e.Value-e.Low), e.Value+3*(e.High-e.Value)
				if e.AtLeast {
					high = truth[f]
				}
				if n := truth[f]; n == 0 || n < 0.5*low || n > 2*high {
					t.Errorf("%s: %v calls, estimated %+v", f, n, e)
				}
			}
		})
	}
}

// A recorder that is killed in a window or between two leaves no probe.
func TestBudgetKilled(t *testing.T) {
	testutil.NeedBPF(t)
	// With 100 % nearly all of the time is in windows.
	for budget, within := range map[string]bool{"100%": true, "5%": false} {
		t.Run(fmt.Sprint("within a window: ", within), func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, "rates"), "0", "30000")
			child.Ready()
			r := start(t, child, "--budget", budget, "-o", "-")
			child.Go()
			defer testutil.Unstuck(t, child.PID)()
			for len(testutil.CodeOf(t, child.PID).Changed) > 0 != within {
			}
			r.Signal(syscall.SIGKILL)
			r.Wait()
			for len(testutil.CodeOf(t, child.PID).Changed) > 0 { // until the keeper has removed them
			}
			child.Signal(syscall.SIGTERM)
			child.Succeed()
		})
	}
}

// Flags that do not go with a budget are refused in one line.
func TestBudgetRefusals(t *testing.T) {
	for flags, want := range map[string]string{
		"--budget 0":                     "a percentage from 0.1 to 100",
		"--budget 101%":                  "a percentage from 0.1 to 100",
		"--budget much":                  "a percentage from 0.1 to 100",
		"--budget NaN":                   "a percentage from 0.1 to 100",
		"--budget 1% --max-rate 10":      "--max-rate pauses in another way",
		"--budget 1% --min-size 10":      "--min-size needs to know all live blocks",
		"--budget 1% --snapshot 10s":     "--snapshot needs to know all live blocks",
		"--budget 1% --heap-growth":      "the whole heap",
		"--budget 1% --format text":      "has no place for them",
		"--budget 1% --format sprtrace":  "has no place for them",
		"--budget 1% -e file":            "a budget is for allocators alone",
		"--budget 1% -e growth":          "without probes",
		"--budget 1% --postproc -l -o x": "goes with --format sprtrace",
	} {
		got := finish(t, command(t, append([]string{"-p", "1"}, strings.Fields(flags)...)...))
		if got.code != int(cli.Usage) || !strings.Contains(got.stderr, want) || strings.Count(strings.TrimSpace(got.stderr), "\n") > 1 {
			t.Errorf("%s: exit code %d, %q is not in: %s", flags, got.code, want, got.stderr)
		}
	}
}
