package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/cli"
)

// twoSites returns the windowed trace with a second call site, which made one call of 30 bytes in
// every other window.
func twoSites(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	n := 0
	for line := range strings.Lines(windowed()) {
		if strings.Contains(line, `"kind":"window"`) && strings.Contains(line, `"weight"`) {
			n++
		}
		if strings.Contains(line, `"kind":"call"`) {
			line = strings.Replace(line, `"function":"malloc"`, `"function":"malloc","caller":"parse"`, 1)
		}
		b.WriteString(line)
		if strings.Contains(line, `"kind":"window"`) && strings.Contains(line, `"weight"`) && n%2 == 1 {
			fmt.Fprintf(&b, `{"kind":"call","time":%d,"pid":7,"tid":7,"seq":%d,"op":"alloc","function":"malloc","caller":"load","resource":1,"id":"%#x","size":30}`+"\n", n*1_000_000_000+500, 100+n, (100+n)<<12)
		}
	}
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every view that prints estimates has the same figures, and those of info. A window has weight 100
// and probes take half of it: a call stands for 200.
func TestEstimatesAreTheSameEverywhere(t *testing.T) {
	path := twoSites(t)
	run := func(args ...string) (out, stderr string) {
		t.Helper()
		code, out, stderr := try(cli.Streams{}, append(args, path)...)
		if code != cli.OK {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return out, stderr
	}
	var info struct{ Budget *budgetReport }
	out, _ := run("info", "--json")
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		t.Fatal(err)
	}
	var top topEstimates
	out, _ = run("top", "--json")
	if err := json.Unmarshal([]byte(out), &top); err != nil {
		t.Fatal(err)
	}
	if b := info.Budget; top.Total.Blocks != b.Allocations || top.Total.Bytes != b.Bytes || top.Windows != b.Summary {
		t.Errorf("top has %+v, info %+v", top, b)
	}
	if len(top.Groups) != 2 || top.Groups[0].Bytes.Value != 18000 || top.Groups[1].Bytes.Value != 14000 || top.Groups[0].Blocks.Value != 600 {
		t.Errorf("top: %+v", top.Groups)
	}
	var want []string
	for _, g := range top.Groups {
		want = append(want, fmt.Sprintf("%s %.0f\n", g.Frames[0].Function, math.Round(g.Bytes.Value)))
	}
	folded, stderr := run("convert", "-f", "folded")
	if folded != strings.Join(want, "") || !strings.Contains(stderr, "recorded with --budget") {
		t.Errorf("folded: %s, want %s; %s", folded, want, stderr)
	}
	out, _ = run("convert", "-f", "speedscope")
	for _, part := range []string{`"name":"busy: estimated from 6 windows of 60ms in all (--budget)`, `"weights":[18000,14000]`, `"weights":[600,1400]`, `"activeProfileIndex":0`} {
		if !strings.Contains(out, part) {
			t.Errorf("speedscope: no %s in %s", part, out)
		}
	}
	if strings.Contains(out, "inuse") {
		t.Errorf("speedscope: blocks in use are invented: %s", out)
	}
	pprofOf(t, path, &top)
	estimatesOf(t, path, &top)
}

// estimatesOf checks the page of a trace against the groups of top: values and texts with their errors.
func estimatesOf(t *testing.T, path string, top *topEstimates) {
	t.Helper()
	code, page, stderr := try(cli.Streams{}, "report", path)
	if code != cli.OK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	type of struct {
		Name, Parent int
		Values       [2]float64
		Text         [4]string
	}
	var p struct {
		Length       int64
		Rates        [][7]float64
		Texts        []string
		Sites, Boxes []of
	}
	parseData(t, page, &p)
	if len(p.Sites) != len(top.Groups) || len(p.Boxes) != 1+len(top.Groups) || len(p.Rates) != top.Windows.Windows || p.Length != 6e9 {
		t.Fatalf("%+v", p)
	}
	want := func(a *estimate.Allocated) of {
		return of{Values: [2]float64{a.Blocks.Value, a.Bytes.Value}, Text: [4]string{a.Blocks.Text(), a.Bytes.Text(), a.Blocks.Per(6e9).RateText(), a.Bytes.Per(6e9).RateText()}}
	}
	if got := p.Boxes[0]; got != want(&top.Total) {
		t.Errorf("all: %+v, want %+v", got, want(&top.Total))
	}
	for i := range top.Groups {
		// A call site and its box, in the order of their bytes or of the larger share.
		name := top.Groups[i].Frames[0].Function
		for _, all := range [][]of{p.Sites, p.Boxes} {
			n := slices.IndexFunc(all, func(x of) bool { return p.Texts[x.Name] == name })
			if n < 0 {
				t.Fatalf("no %s in %+v", name, all)
			}
			got := all[n]
			if got.Name = 0; got != want(&top.Groups[i].Allocated) {
				t.Errorf("%s: %+v, want %+v", name, got, want(&top.Groups[i].Allocated))
			}
		}
	}
	body, _, _ := strings.Cut(page[strings.Index(page, "</style>"):], "<script")
	for _, text := range []string{top.Total.Bytes.Text() + " bytes.", "estimated from 6 windows of 60ms in all", "windows miss frees", "rtrace-bpf record -e growth -p 7", "0.50 % of the process"} {
		if !strings.Contains(body, text) {
			t.Errorf("%q is not on the page", text)
		}
	}
	if strings.Contains(body, "still live") || strings.Contains(body, "suspect") {
		t.Error("the page is about live blocks")
	}
}

// pprofOf checks the profile of a trace against the groups of top.
func pprofOf(t *testing.T, path string, top *topEstimates) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "x.pb.gz")
	if code, _, stderr := try(cli.Streams{}, "convert", "-o", to, path); code != cli.OK {
		t.Fatalf("pprof: exit code %d: %s", code, stderr)
	}
	f, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.SampleType) != 2 || p.SampleType[0].Type != "alloc_objects" || p.SampleType[1].Type != "alloc_space" || p.DefaultSampleType != "alloc_space" {
		t.Errorf("pprof: %v, %s", p.SampleType, p.DefaultSampleType)
	}
	for i, s := range p.Sample {
		if g := top.Groups[i]; s.Value[0] != int64(math.Round(g.Blocks.Value)) || s.Value[1] != int64(math.Round(g.Bytes.Value)) {
			t.Errorf("pprof: %v, top: %+v", s.Value, g)
		}
	}
	if text := strings.Join(p.Comments, "\n"); !strings.Contains(text, "estimated from 6 windows") || !strings.Contains(text, top.Total.Bytes.Text()+" bytes") || !strings.Contains(text, "windows miss frees") {
		t.Errorf("comments: %s", text)
	}
}

// The text of top begins with where its figures come from, and has no columns of live blocks.
func TestTopOfWindows(t *testing.T) {
	path := twoSites(t)
	code, out, stderr := try(cli.Streams{}, "top", "--top", "1", path)
	if code != cli.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	lines := strings.Split(out, "\n")
	if !strings.HasPrefix(lines[0], "estimated from 6 windows of 60ms in all (--budget); they stand for 6s of 6s") ||
		!strings.HasPrefix(lines[1], "allocated: 2,000 (637 to ") || !strings.Contains(lines[2], "not known") {
		t.Errorf("it begins with\n%s", out)
	}
	if table := strings.Join(lines[4:], "\n"); strings.Contains(table, "live") || strings.Contains(table, "peak") || !strings.Contains(table, "1 other group left out") || !strings.Contains(table, "load") {
		t.Errorf("the table is\n%s", out)
	}
	for _, wrong := range []string{"--sort live", "--sort peak", "--from 1s"} {
		if code, _, stderr := try(cli.Streams{}, append(append([]string{"top"}, strings.Fields(wrong)...), path)...); code != cli.Usage || !strings.Contains(stderr, "--budget") {
			t.Errorf("%s: exit code %d, %s", wrong, code, stderr)
		}
	}
	for _, wrong := range []string{"--value inuse_space", "--to 1s"} {
		if code, _, stderr := try(cli.Streams{}, append(append([]string{"convert", "-f", "folded"}, strings.Fields(wrong)...), path)...); code != cli.Usage || !strings.Contains(stderr, "--budget") {
			t.Errorf("%s: exit code %d, %s", wrong, code, stderr)
		}
	}
}

// The page of two traces has the rates of both, and their differences. It is of traces of the same kind.
func TestReportOfTwoWindowed(t *testing.T) {
	before, after := windowedTrace(t), twoSites(t)
	code, page, stderr := try(cli.Streams{}, "report", before, after)
	if code != cli.OK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	type of struct {
		Name, Parent  int
		Before, After [2]float64
		Change        [2]int
		Text          [6]string
	}
	var p struct {
		Texts        []string
		Sites, Boxes []of
	}
	parseData(t, page, &p)
	// Six seconds with 1,400 blocks of 10 bytes; after, by parse, and load has 600 of 30 bytes.
	load := slices.IndexFunc(p.Sites, func(x of) bool { return p.Texts[x.Name] == "load" })
	if load < 0 || p.Sites[load].Before != [2]float64{} || p.Sites[load].After != [2]float64{100, 3000} || !strings.HasPrefix(p.Sites[load].Text[1], "100 (") {
		t.Errorf("load: %+v of %+v", load, p.Sites)
	}
	if got := p.Boxes[0]; got.Before[1] != 14000.0/6 || got.After[1] != 32000.0/6 {
		t.Errorf("all: %+v", got)
	}
	whole := versionTrace(t, "whole.jsonl", 1, 0x1000, map[string][2]int{"cache": {10, 100}})
	if code, _, stderr := try(cli.Streams{}, "report", before, whole); code != cli.Usage || !strings.Contains(stderr, "--budget") {
		t.Errorf("of different kinds: exit code %d, %s", code, stderr)
	}
}
