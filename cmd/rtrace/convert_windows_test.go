package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/dataset"
)

// tableRows returns the rows of a table of a dataset with one trace.
func tableRows[T any](t *testing.T, dir, table string) []T {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, table, "*/*/*/*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, %v", table, files, err)
	}
	rows, err := parquet.ReadFile[T](files[0])
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The tables of a trace of windows have what rtrace top estimates: as estimates by stack, and as
// weights of the calls. Nothing in them is about live blocks.
func TestTablesOfWindows(t *testing.T) {
	path, dir := twoSites(t), filepath.Join(t.TempDir(), "lake")
	if code, _, stderr := try(cli.Streams{}, "convert", "-f", "parquet", "-o", dir, path); code != cli.OK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	top := rtraceJSON[topEstimates](t, "top", "--by", "stack", path)
	site := map[int64]string{}
	for _, s := range tableRows[dataset.Stack](t, dir, "stacks") {
		site[s.Stack] = s.Site
	}
	want, got := map[string]string{}, map[string]string{}
	for _, g := range top.Groups {
		want[frameText(&g.Frames[0])] = fmt.Sprint(g.Blocks.Value, g.Blocks.Low, g.Blocks.High, g.Bytes.Value, g.Bytes.Low, g.Bytes.High, g.Blocks.AtLeast)
	}
	for _, e := range tableRows[dataset.Estimate](t, dir, "estimates") {
		got[site[e.Stack]] = fmt.Sprint(e.Blocks, e.BlocksLow, e.BlocksHigh, e.Bytes, e.BytesLow, e.BytesHigh, e.AtLeast)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 2 {
		t.Errorf("estimates: %v, want %v", got, want)
	}
	windows := tableRows[dataset.Window](t, dir, "windows")
	if len(windows) != 6 || *windows[1].Open != 10e6 || windows[1].Stretch != 1e9 || windows[1].Used != 10e6 || windows[1].Added != 5e6 || *windows[1].Since != 1e9-1 {
		t.Errorf("windows: %+v", windows)
	}
	sum := 0.0
	for _, c := range tableRows[dataset.Call](t, dir, "calls") {
		sum += float64(*c.Weight) * windows[c.Window-1].Factor
	}
	if sum != top.Total.Blocks.Value {
		t.Errorf("the calls stand for %v, want %v", sum, top.Total.Blocks.Value)
	}
	for table, rows := range map[string]int{
		"blocks": len(tableRows[dataset.Block](t, dir, "blocks")), "sites": len(tableRows[dataset.Site](t, dir, "sites")), "resources": len(tableRows[dataset.Resource](t, dir, "resources")),
	} {
		if rows != 0 {
			t.Errorf("%s has %d rows", table, rows)
		}
	}
	if about := tableRows[dataset.Trace](t, dir, "traces"); len(about) != 1 || about[0].Windows != 6 {
		t.Errorf("traces: %+v", about)
	}
	whole := filepath.Join(t.TempDir(), "lake")
	file := versionTrace(t, "whole.jsonl", 1, 0x1000, map[string][2]int{"cache": {10, 100}})
	if code, _, stderr := try(cli.Streams{}, "convert", "-f", "parquet", "-o", whole, file); code != cli.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if calls := tableRows[dataset.Call](t, whole, "calls"); calls[0].Weight != nil || calls[0].Window != 0 || len(tableRows[dataset.Window](t, whole, "windows")) != 0 {
		t.Errorf("a whole trace has %+v", calls[0])
	}
	if _, err := os.Stat(filepath.Join(whole, "estimates")); err != nil {
		t.Error(err)
	}
}
