package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// Times are printed in the local time zone; the corpus is in UTC.
func init() { time.Local = time.UTC }

const spRtraceCorpus = "../../testdata/corpus/sp-rtrace"

// corpusCase is an input, the flags, and the output of the real sp-rtrace-postproc for it.
type corpusCase struct {
	name   string // of the output, below the corpus
	input  string
	flags  []string
	stderr string // its standard output; "?" if the corpus does not have it
}

func corpusCases(t *testing.T) []corpusCase {
	t.Helper()
	var all []corpusCase
	glob := func(pattern string) []string {
		m, err := filepath.Glob(filepath.Join(spRtraceCorpus, filepath.FromSlash(pattern)))
		if err != nil || len(m) == 0 {
			t.Fatalf("nothing in the corpus for %s: %v", pattern, err)
		}
		return m
	}
	name := func(path string) string {
		rel, err := filepath.Rel(spRtraceCorpus, path)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.ToSlash(rel)
	}
	for _, plain := range glob("out/*/plain.txt") {
		dir := filepath.Dir(plain)
		binary := filepath.Join(spRtraceCorpus, filepath.Base(dir)+".rtrace")
		all = append(all,
			corpusCase{name: name(plain), input: binary},
			corpusCase{name: name(filepath.Join(dir, "l.txt")), input: binary, flags: []string{"-l"}},
			corpusCase{name: name(filepath.Join(dir, "roundtrip-plain.txt")), input: plain},
			corpusCase{name: name(filepath.Join(dir, "roundtrip-lc.txt")), input: plain, flags: []string{"-l", "-c"}},
		)
		for file, flags := range map[string][]string{
			"c": {"-c"}, "lc": {"--compress", "--filter-leaks"}, "b2": {"-b", "2"},
			"lc-size": {"-lc", "-s", "size"}, "lc-count": {"-lc", "--sort=count"}, "lc-count-asc": {"-lc", "-s", "count-asc"},
		} {
			all = append(all, corpusCase{name: name(filepath.Join(dir, file+".txt")), input: binary, flags: flags})
		}
	}
	chosen := func(trace, file string, flags ...string) {
		path := filepath.Join(spRtraceCorpus, "out", trace, file)
		all = append(all, corpusCase{name: name(path), input: filepath.Join(spRtraceCorpus, trace+".rtrace"), flags: flags})
	}
	for _, path := range glob("out/multi/R*.txt") {
		mask, leaks := strings.CutSuffix(strings.TrimSuffix(filepath.Base(path), ".txt"), "-l")
		flags := []string{"-R", strings.TrimPrefix(mask, "R")}
		if leaks {
			flags = append(flags, "-l")
		}
		chosen("multi", filepath.Base(path), flags...)
	}
	for _, path := range glob("out/context/C*.txt") {
		mask := strings.TrimSuffix(filepath.Base(path), ".txt")
		chosen("context", filepath.Base(path), "--context="+strings.TrimPrefix(mask, "C"))
	}
	list := filepath.Join(spRtraceCorpus, "out", "c-leaks", "index.list")
	chosen("c-leaks", "include.txt", "--include", list)
	chosen("c-leaks", "exclude.txt", "--exclude", list)
	arg := corpusText(t, "out/c-leaks-nosep/call-address.arg")
	chosen("c-leaks-nosep", "call-address.txt", "--call-address", strings.TrimSpace(arg))
	for _, path := range glob("synthetic/*.lc.txt") {
		all = append(all, corpusCase{name: name(path), input: strings.TrimSuffix(path, ".lc.txt") + ".rtrace", flags: []string{"-lc"}, stderr: "?"})
	}
	for _, plain := range glob("synthetic/*.plain.txt") {
		base := strings.TrimSuffix(plain, ".plain.txt")
		c := corpusCase{name: name(plain), input: base + ".rtrace", stderr: "?"}
		if _, err := os.Stat(c.input); err != nil {
			c.input = base + ".txt"
		}
		if text, err := os.ReadFile(base + ".stderr.txt"); err == nil {
			c.stderr = string(text)
		}
		all = append(all, c)
	}
	return all
}

func corpusText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(spRtraceCorpus, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// runRtrace runs the program in-process.
func runRtrace(stdin string, args ...string) (stdout, stderr string, code cli.ExitCode) {
	var out, errOut bytes.Buffer
	s := cli.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errOut}
	code = run(context.Background(), s, append([]string{"rtrace"}, args...))
	return out.String(), errOut.String(), code
}

// TestPostprocLegacy compares byte for byte with the real tool, for files and pipes, with
// its warnings.
func TestPostprocLegacy(t *testing.T) {
	for _, c := range corpusCases(t) {
		t.Run(c.name, func(t *testing.T) {
			want := corpusText(t, c.name)
			in, err := os.ReadFile(c.input)
			if err != nil {
				t.Fatal(err)
			}
			flags := append([]string{"postproc", "--legacy"}, c.flags...)
			for _, way := range []struct {
				name, stdin string
				args        []string
			}{
				{"file", "", append(flags, "-i", c.input)},
				{"pipe", string(in), flags},
			} {
				out, errOut, code := runRtrace(way.stdin, way.args...)
				if d := cmp.Diff(want, out); d != "" {
					t.Errorf("%s (-want +got):\n%s", way.name, d)
				}
				if c.stderr != "?" && errOut != c.stderr {
					t.Errorf("%s: stderr %q, want %q", way.name, errOut, c.stderr)
				}
				if code != cli.OK {
					t.Errorf("%s: exit code %d", way.name, code)
				}
				quiet, errOut, _ := runRtrace(way.stdin, append(way.args, "-q")...)
				if errOut != "" || quiet != out {
					t.Errorf("%s: with -q: stderr %q, output the same: %v", way.name, errOut, quiet == out)
				}
			}
		})
	}
}

// difference is one row of the table of differences without --legacy.
type difference struct {
	less, more int // lines that only the real tool prints, and lines that only we print
	code       cli.ExitCode
	why        string
}

// readDifferences reads a table. Its columns are separated by white space; the last one is
// the reason.
func readDifferences(t *testing.T, name string) map[string]difference {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]difference{}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		f := strings.Fields(line)
		var d difference
		if n, err := fmt.Sscanf(strings.Join(f[:min(4, len(f))], " "), "%s %d %d %d", new(string), &d.less, &d.more, &d.code); n != 4 || len(f) < 5 {
			t.Fatalf("bad row %q: %v", line, err)
		}
		d.why = strings.Join(f[4:], " ")
		if _, twice := table[f[0]]; twice {
			t.Fatalf("two rows for %s", f[0])
		}
		table[f[0]] = d
	}
	return table
}

// TestPostprocDifferences: without --legacy the output differs exactly where the table lists
// it. The header's origin always differs.
func TestPostprocDifferences(t *testing.T) {
	table := readDifferences(t, "postproc-differences.txt")
	ours := "origin=rtrace-bpf " + cli.BuildVersion() + ", \n"
	for _, c := range corpusCases(t) {
		want := corpusText(t, c.name)
		if strings.HasSuffix(c.input, ".rtrace") {
			want = strings.Replace(want, "origin=sp-rtrace 1.8, \n", ours, 1)
		}
		got, errOut, code := runRtrace("", append([]string{"postproc", c.input}, c.flags...)...)
		less, more := lineDiff(want, got)
		row, listed := table[c.name]
		delete(table, c.name)
		if len(less) != row.less || len(more) != row.more || code != row.code {
			t.Errorf("%s: %d lines less, %d more, exit code %d; the table says %d, %d, %d (%s)\nonly theirs:\n%s\nonly ours:\n%s\nstderr: %s",
				c.name, len(less), len(more), code, row.less, row.more, row.code, row.why, strings.Join(less, ""), strings.Join(more, ""), errOut)
		}
		if !listed && got != want {
			t.Errorf("%s: the order of the lines differs:\n%s", c.name, cmp.Diff(want, got))
		}
		if listed && got == want && code == cli.OK {
			t.Errorf("%s: the table lists it, but nothing differs", c.name)
		}
	}
	for name := range table {
		t.Errorf("%s is in the table, but not in the corpus", name)
	}
}

// lineDiff returns the lines that only one of two texts has, and further copies of lines
// that it has more often.
func lineDiff(a, b string) (onlyA, onlyB []string) {
	count := map[string]int{}
	for line := range strings.Lines(b) {
		count[line]++
	}
	for line := range strings.Lines(a) {
		if count[line] > 0 {
			count[line]--
		} else {
			onlyA = append(onlyA, line)
		}
	}
	for line, n := range count {
		for range n {
			onlyB = append(onlyB, line)
		}
	}
	slices.Sort(onlyB)
	return onlyA, onlyB
}
