package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/analysis/fleet"
)

// fleetTraces is how many traces BenchmarkQuestions has.
const fleetTraces = 10

// BenchmarkQuestions measures what the questions "live" and "growing" cost: rtrace leaks over
// the traces, and DuckDB over tables, which are made once. The variable CALLS is the number
// of calls in all traces together. make bench-questions runs it.
func BenchmarkQuestions(b *testing.B) {
	calls := 2_000_000
	if text := os.Getenv("CALLS"); text != "" {
		var err error
		if calls, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	duck, err := filepath.Abs("../../bin/duckdb")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := os.Stat(duck); err != nil {
		b.Skip("make need-duckdb installs DuckDB")
	}
	dir := b.TempDir()
	bytes := makeTraces(b, filepath.Join(dir, "traces"), calls)
	program := filepath.Join(dir, "rtrace")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatal(err, string(out))
	}
	script, err := filepath.Abs("testdata/queries.mjs")
	if err != nil {
		b.Fatal(err)
	}
	sql := pageBlocks(b, sqlBlock)
	setup := sql["setup"]
	var leaks, convert, query cost
	for b.Loop() {
		convert.run(b, dir, "", program, "convert", "-f", "parquet", "--no-resolve", "-o", "fleet.parquet", "traces")
		together := leaks.run(b, dir, "", program, "leaks", "--no-resolve", "--json", "traces")
		input, err := json.Marshal(map[string]any{"setup": setup, "queries": map[string]string{"live": sql["live"], "growing": sql["growing"]}})
		if err != nil {
			b.Fatal(err)
		}
		answers := query.run(b, dir, string(input), "node", script, duck)
		compareLive(b, together, answers)
	}
	b.ReportMetric(float64(bytes)/1e6, "MB")
	leaks.report(b, "leaks")
	convert.report(b, "convert")
	query.report(b, "duckdb")
	b.ReportMetric(1.5*float64(calls)*float64(b.N)/convert.cpu.Seconds()/1e6, "Mrows/cpu-s")
}

// makeTraces writes traces of calls in all to a new folder, and returns their size.
func makeTraces(b *testing.B, dir string, calls int) (size int64) {
	b.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	for i := range fleetTraces {
		file, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			b.Fatal(err)
		}
		// A trace that has a few more live blocks than the others has another identity.
		if _, err = writeChurnOf(file, calls/2/fleetTraces, 1000+i, 50); err != nil {
			b.Fatal(err)
		}
		info, err := file.Stat()
		if err != nil {
			b.Fatal(err)
		}
		size += info.Size()
		if err := file.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return size
}

// cost is what runs of a program used.
type cost struct {
	cpu, wall time.Duration
	peak      int64 // bytes
}

// run runs a program and returns its output.
func (c *cost) run(b *testing.B, dir, input, name string, args ...string) []byte {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), name, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(input), os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(name, args, err)
	}
	c.wall += time.Since(start)
	c.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	c.peak = max(c.peak, peakMemory(cmd.ProcessState))
	return out
}

func (c *cost) report(b *testing.B, name string) {
	b.ReportMetric(c.cpu.Seconds()/float64(b.N), name+"-cpu-s")
	b.ReportMetric(c.wall.Seconds()/float64(b.N), name+"-wall-s")
	b.ReportMetric(float64(c.peak)/(1<<20), name+"-peak-MiB")
}

// compareLive checks that rtrace and DuckDB answer the same.
func compareLive(b *testing.B, together, answers []byte) {
	b.Helper()
	var x leakFleetObject
	var rows map[string][][]string
	if err := json.Unmarshal(together, &x); err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(answers, &rows); err != nil {
		b.Fatal(err)
	}
	if len(rows["live"]) == 0 || len(x.Groups) < len(rows["live"]) || x.Count != (fleet.Count{Traces: fleetTraces, Hosts: 1, Services: 1}) {
		b.Fatalf("%d rows, %d groups of %+v", len(rows["live"]), len(x.Groups), x.Count)
	}
	sums := make(map[string]string) // there are several groups of the same bytes
	for _, g := range x.Groups {
		sums[cmp.Or(g.Frames[0].Position, frameText(&g.Frames[0]))] = fmt.Sprint(g.Traces, g.Blocks, g.Bytes)
	}
	for _, row := range rows["live"] {
		if want := strings.Join(row[1:], " "); sums[row[0]] != want {
			b.Fatalf("%s: rtrace %s, DuckDB %s", row[0], sums[row[0]], want)
		}
	}
}
