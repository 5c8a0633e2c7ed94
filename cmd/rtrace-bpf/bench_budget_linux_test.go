package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/governor"
)

// Times of BenchmarkBudget: a recording has whole intervals of 10 s. Neither process is traced before
// and after each recording.
const (
	budgetRecorded = 20 * time.Second
	budgetUntraced = 8 * time.Second
)

// BenchmarkBudget measures how much more CPU time real programs use for the same work while they are
// recorded with a budget, from before the probes are attached until they are removed, and what the
// tracer itself measured. It prints a table. An iteration is a round: recordings of 1 %, 5 % and 20 %.
// Run it with -benchtime 5x or more.
//
// A second process does the same work in turn with the first, a unit each, and is never traced. What
// counts is how many times as much the first one uses, compared with the times before and after the
// recording. So the load of the machine matters less.
func BenchmarkBudget(b *testing.B) {
	testutil.NeedBPF(b)
	budgets := []string{"1%", "5%", "20%"}
	table := "| program | CPU per unit of work | " + strings.Join(budgets, " | ") + " |\n|---|---|---|---|---|\n"
	for _, w := range workers() {
		b.Run(w.name, func(b *testing.B) {
			m := startPair(b, &w)
			alone, unit := m.phase(budgetUntraced, nil)
			units := []float64{unit}
			rows := map[string]*budgetedRow{}
			for b.Loop() {
				for _, budget := range budgets {
					if rows[budget] == nil {
						rows[budget] = &budgetedRow{}
					}
					with, cost := m.recorded(budget)
					after, unit := m.phase(budgetUntraced, nil)
					rows[budget].add(100*(2*with/(alone+after)-1), &cost)
					alone, units = after, append(units, unit)
				}
			}
			line := fmt.Sprintf("| %s | %.2f ms |", w.name, quantile(units, 0.5)/1e6)
			for _, budget := range budgets {
				r := rows[budget]
				line += " " + r.text() + " |"
				b.ReportMetric(quantile(r.added, 0.5), "added-%/"+budget)
				b.ReportMetric(quantile(r.own, 0.5), "own-%/"+budget)
				b.ReportMetric(slices.Max(r.worst), "worst-%/"+budget)
			}
			b.ReportMetric(0, "ns/op")
			table += line + "\n"
		})
	}
	fmt.Print(table)
}

// budgetedRow holds percentages of all rounds with one budget.
type budgetedRow struct {
	added []float64 // CPU time for a unit of work, more than untraced
	own   []float64 // added as the tracer measured it
	worst []float64 // likewise, of the worst 10 seconds
}

func (r *budgetedRow) add(added float64, c *trace.Cost) {
	r.added = append(r.added, added)
	r.own = append(r.own, 100*c.Share())
	r.worst = append(r.worst, float64(c.Worst)/1e4)
}

// text is the median and all but the lowest and highest tenth, and the tracer's own median and worst.
func (r *budgetedRow) text() string {
	return fmt.Sprintf("%+.1f (%+.1f to %+.1f); own %.2f, worst %.2f",
		quantile(r.added, 0.5), quantile(r.added, 0.1), quantile(r.added, 0.9), quantile(r.own, 0.5), slices.Max(r.worst))
}

// quantile returns the value below which a share of all values is.
func quantile(all []float64, share float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[int(share*float64(len(all)-1)+0.5)]
}

// workPair is two processes that do the same work. The first one is recorded.
type workPair struct {
	b    *testing.B
	pids [2]int
	work [2]func() // does a unit of work
}

func startPair(b *testing.B, w *worker) *workPair {
	b.Helper()
	m := &workPair{b: b}
	for i := range m.pids {
		m.pids[i], m.work[i] = w.start(b)
		for range 20 {
			m.work[i]()
		}
	}
	return m
}

// phase has both processes work in turn for a time, or until ended is closed. It returns how many times
// as much CPU time as the second the first one uses, and the CPU time of the second for a unit of
// work, in ns.
func (m *workPair) phase(length time.Duration, ended <-chan struct{}) (times, unit float64) {
	m.b.Helper()
	var used [2]time.Duration
	count := func(sign time.Duration) {
		for i, pid := range m.pids {
			t, err := governor.CPUTime(pid)
			if err != nil {
				m.b.Fatal(err)
			}
			used[i] += sign * t
		}
	}
	began, units := time.Now(), 0
	count(-1)
	for over := false; !over; units++ {
		m.work[0]()
		m.work[1]()
		select {
		case <-ended:
			over = true
		default:
			over = ended == nil && time.Since(began) >= length
		}
	}
	count(1)
	return float64(used[0]) / float64(used[1]), float64(used[1]) / float64(units)
}

// recorded returns how many times as much CPU time as the second process the first one uses while it
// is recorded with a budget, and what the recording has cost according to its trace.
func (m *workPair) recorded(budget string) (times float64, cost trace.Cost) {
	m.b.Helper()
	path := filepath.Join(m.b.TempDir(), "trace")
	recorder := testutil.Start(m.b, command(m.b, "record", "-q", "-p", fmt.Sprint(m.pids[0]), "--budget", budget, "--duration", budgetRecorded.String(), "-o", path))
	times, _ = m.phase(0, recorder.Exited())
	recorder.Succeed()
	all := costsIn(m.b, path)
	if len(all) != 1 {
		m.b.Fatalf("costs: %+v", all)
	}
	return times, all[0]
}
