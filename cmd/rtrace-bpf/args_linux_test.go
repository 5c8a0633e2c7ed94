package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// TestArgs checks that calls of the allocator have the program's arguments with --args, for
// each mechanism, and no arguments without it.
func TestArgs(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		build(t, "arguments")
		for way, flags := range map[string][]string{"auto": nil, "old kernel": append([]string{"--bounded"}, oldKernel...), "perf buffers": {"--buffer", "perf"}} {
			t.Run(way, func(t *testing.T) {
				testArgs(t, build, "jsonl", slices.Concat(flags, []string{"--args"})...)
			})
		}
		t.Run("none", func(t *testing.T) { testArgs(t, build, "jsonl") })
		t.Run("sprtrace", func(t *testing.T) { testArgs(t, build, "sprtrace", "--args") })
	})
}

func testArgs(t *testing.T, build testutil.Builder, format string, flags ...string) {
	child := waitingOf(t, build, "arguments")
	r := start(t, child, slices.Concat(flags, []string{"--format", format})...)
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	records := load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, encoder.Suffix(format))))
	wanted := slices.Contains(flags, "--args")
	for _, rec := range records {
		if format == "sprtrace" && rec.Kind == trace.KindCall && rec.Call.Op == trace.OpFree && rec.Call.Function != "free" {
			continue // of a move, which has its arguments where the new block is
		}
		if rec.Kind == trace.KindCall && wanted != (len(rec.Call.Args) > 0) {
			t.Errorf("arguments %v of %s", rec.Call.Args, rec.Call.Function)
		}
	}
	if format == "sprtrace" {
		return // the other formats are compared with the program's output
	}
	output := string(child.Output())
	if !wanted {
		var lines []string
		for line := range strings.Lines(output) {
			lines = append(lines, strings.Join(strings.Fields(line)[:5], " "))
		}
		output = strings.Join(lines, "\n") + "\n"
	}
	equalResources(t, resourceLines(records), output, true)
}
