package main

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/dataset"
)

// inTables reads all rows of a table of a dataset.
func inTables[T any](t *testing.T, dir, table string) (all []T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, table, "*/*/*/*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(table, err, "no files")
	}
	for _, name := range files {
		rows, err := parquet.ReadFile[T](name)
		if err != nil {
			t.Fatal(name, err)
		}
		all = append(all, rows...)
	}
	return all
}

// toTables converts traces to a new dataset.
func toTables(t *testing.T, args ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "all.parquet")
	_, errOut, code := runRtrace("", append([]string{"convert", "-o", dir}, args...)...)
	if code != cli.OK && code != cli.Incomplete {
		t.Fatalf("%v: exit code %d: %s", args, code, errOut)
	}
	return dir
}

// TestTablesLikeLeaks compares the live blocks of call sites, and the calls and amounts of
// each resource, with rtrace leaks and rtrace info, for all traces of the corpus.
func TestTablesLikeLeaks(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(spRtraceCorpus, "*.rtrace"))
	if err != nil || len(files) < 10 {
		t.Fatal(err, "no corpus")
	}
	compared := 0
	for _, file := range files {
		dir := toTables(t, file)
		stacks := map[int64]dataset.Stack{}
		for _, s := range inTables[dataset.Stack](t, dir, "stacks") {
			stacks[s.Stack] = s
		}
		live := map[string]amount{}
		for _, s := range inTables[dataset.Site](t, dir, "sites") {
			if s.Resource == memoryType && s.LiveBlocks > 0 {
				a := live[stacks[s.Stack].Site]
				live[stacks[s.Stack].Site] = amount{a.Blocks + uint64(s.LiveBlocks), a.Bytes + uint64(s.LiveBytes)}
			}
		}
		for _, r := range inTables[dataset.Resource](t, dir, "resources") {
			x := leaksOf(t, file, "--resource", r.Resource)
			if got := (amount{uint64(r.LiveBlocks), uint64(r.LiveBytes)}); got != x.All || uint64(r.UnmatchedFrees) != x.Unmatched {
				t.Errorf("%s %s: %v live, %d unmatched; leaks has %v, %d", file, r.Resource, got, r.UnmatchedFrees, x.All, x.Unmatched)
			}
			if r.Resource != memoryType {
				continue
			}
			want := map[string]amount{}
			for _, g := range x.Groups {
				name := frameText(&g.Frames[0])
				a := want[name]
				want[name] = amount{a.Blocks + g.Blocks, a.Bytes + g.Bytes}
				compared++
			}
			if d := gocmp.Diff(want, live); d != "" {
				t.Errorf("%s (-leaks +tables): %s", file, d)
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d call sites were compared", compared)
	}
}

// frameText is the text of a frame of JSON as tables have it.
func frameText(f *leakFrame) string {
	x := sites.Frame{Place: sites.Place{Function: f.Function, File: f.File, Line: f.Line, Module: f.Module}, Position: f.Position}
	if f.Address != "" {
		x.Addr, _ = strconv.ParseUint(f.Address, 0, 64) // as rtrace has written it
	}
	return x.String()
}

// TestTablesLikeInfo compares the numbers of calls and amounts with rtrace info --json.
func TestTablesLikeInfo(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(spRtraceCorpus, "*.rtrace"))
	if err != nil || len(files) < 10 {
		t.Fatal(err, "no corpus")
	}
	for _, file := range files {
		out, errOut, code := runRtrace("", "info", "--json", file)
		if code != cli.OK && code != cli.Incomplete {
			t.Fatal(file, code, errOut)
		}
		var info report
		if err := json.Unmarshal([]byte(out), &info); err != nil {
			t.Fatal(err)
		}
		dir := toTables(t, file)
		calls := inTables[dataset.Call](t, dir, "calls")
		if uint64(len(calls)) != info.Calls {
			t.Errorf("%s: %d calls, info has %d", file, len(calls), info.Calls)
		}
		records := uint64(0)
		for _, k := range info.Records {
			if k.Kind != "call" {
				records += k.Count
			}
		}
		if got := uint64(len(inTables[dataset.Entry](t, dir, "records"))); got != records {
			t.Errorf("%s: %d other records, info has %d", file, got, records)
		}
	}
}

// TestTablesOfDirectory converts a directory with traces and other files, twice: the rows
// are the same, and each trace is there once.
func TestTablesOfDirectory(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"c-leaks.rtrace", "cxx.rtrace"} {
		data, err := os.ReadFile(filepath.Join(spRtraceCorpus, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, []string{"a", "b"}[i]), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes"), []byte("no trace\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "tables")
	var before []dataset.Call
	for i := range 2 {
		if _, errOut, code := runRtrace("", "convert", "-f", "parquet", "--host", "web1", "-o", out, dir); code != cli.OK {
			t.Fatal(code, errOut)
		}
		calls := inTables[dataset.Call](t, out, "calls")
		slices.SortFunc(calls, func(a, b dataset.Call) int { return cmp.Or(cmp.Compare(a.Trace, b.Trace), cmp.Compare(a.Call, b.Call)) })
		if traces := inTables[dataset.Trace](t, out, "traces"); len(traces) != 2 {
			t.Errorf("run %d: %d traces", i, len(traces))
		}
		if d := gocmp.Diff(before, calls); i > 0 && d != "" {
			t.Error(d)
		}
		before = calls
	}
	if all, err := filepath.Glob(filepath.Join(out, "traces/date=*/host=web1/service=leak/*.parquet")); err != nil || len(all) != 1 {
		t.Error(all, err)
	}
}

// TestTablesOfFolders: the folders of traces name their hosts.
func TestTablesOfFolders(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join(spRtraceCorpus, "c-leaks.rtrace"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"web1", "web 2"} {
		folder := filepath.Join(dir, host)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "trace"), append(data, make([]byte, len(host)-4)...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := toTables(t, "--folder-is", "host", "--service", "api", filepath.Join(dir, "web1"), filepath.Join(dir, "web 2"))
	for _, in := range []string{"host=web1", "host=web%202"} {
		if all, err := filepath.Glob(filepath.Join(out, "traces/date=*", in, "service=api/*.parquet")); err != nil || len(all) != 1 {
			t.Error(in, all, err)
		}
	}
}

// TestTablesRefused checks command lines that are wrong, and that a file that is no trace
// leaves nothing.
func TestTablesRefused(t *testing.T) {
	trace := filepath.Join(spRtraceCorpus, "c-leaks.rtrace")
	out := filepath.Join(t.TempDir(), "tables")
	for _, tt := range []struct {
		args []string
		code cli.ExitCode
	}{
		{[]string{"-f", "parquet", trace}, cli.Usage},
		{[]string{"-f", "parquet", "-o", out}, cli.Usage},
		{[]string{"-f", "parquet", "-o", trace, trace}, cli.Usage},
		{[]string{"-f", "parquet", "-o", out, "--value", "alloc_space", trace}, cli.Usage},
		{[]string{"-f", "jsonl", "--host", "a", trace}, cli.Usage},
		{[]string{"-f", "jsonl", "--folder-is", "host", trace}, cli.Usage},
		{[]string{"-f", "parquet", "-o", out, "--host", "a", "--folder-is", "host", trace}, cli.Usage},
		{[]string{"-f", "parquet", "-o", out, "convert.go"}, cli.Failed},
		{[]string{"-f", "parquet", "-o", out, "testdata"}, cli.Failed},
	} {
		if _, errOut, code := runRtrace("", append([]string{"convert"}, tt.args...)...); code != tt.code || errOut == "" {
			t.Errorf("%v: exit code %d: %s", tt.args, code, errOut)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a dataset was made")
	}
}

// TestTablesOfCutTrace converts a trace that was cut: the part that exists is there, and
// the table of traces shows it.
func TestTablesOfCutTrace(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(spRtraceCorpus, "c-leaks.rtrace"))
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(cut, data[:len(data)-30], 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tables")
	if _, errOut, code := runRtrace("", "convert", "-f", "parquet", "-o", dir, cut); code != cli.Incomplete {
		t.Fatal(code, errOut)
	}
	if x := inTables[dataset.Trace](t, dir, "traces"); len(x) != 1 || x[0].Complete || x[0].Calls == 0 {
		t.Errorf("%+v", x)
	}
}
