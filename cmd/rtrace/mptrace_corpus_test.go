package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

const mpatrolCorpus = "../../testdata/corpus/mpatrol"

// mptraceCase is a trace and the output of a build of the real mptrace for it.
type mptraceCase struct {
	name   string // of the output, with its folder
	output string // path
	input  string
	build  string
	flags  []string
	code   cli.ExitCode
	stderr string
}

var mpatrolFolders = []string{filepath.Join(mpatrolCorpus, "real"), filepath.Join(mpatrolCorpus, "handmade")}

// mptraceCases returns all outputs of the real tool in some folders.
func mptraceCases(t *testing.T, folders ...string) []mptraceCase {
	t.Helper()
	var all []mptraceCase
	for _, folder := range folders {
		traces, err := filepath.Glob(filepath.Join(folder, "*.trace"))
		if err != nil || len(traces) < 2 {
			t.Fatalf("%d traces in %s: %v", len(traces), folder, err)
		}
		for _, build := range []string{"fixed64", "asis64", "asis32"} {
			for kind, flags := range map[string][]string{"stats": nil, "table": {"-v", "-s"}} {
				outputs, err := filepath.Glob(filepath.Join(folder, "*."+build+"."+kind+".txt"))
				if err != nil {
					t.Fatal(err)
				}
				for _, output := range outputs {
					base := strings.TrimSuffix(output, "."+build+"."+kind+".txt")
					c := mptraceCase{
						name: filepath.Base(folder) + "/" + filepath.Base(output), output: output, input: base + ".trace", build: build, flags: flags,
					}
					c.readExit(t, base)
					all = append(all, c)
				}
			}
		}
		for _, trace := range traces {
			if !slices.ContainsFunc(all, func(c mptraceCase) bool { return c.input == trace }) {
				t.Errorf("no output of the real tool for %s", trace)
			}
		}
	}
	slices.SortFunc(all, func(a, b mptraceCase) int { return strings.Compare(a.name, b.name) })
	return all
}

// readExit reads how the real tool ended. If the corrected build ended like the other, the
// corpus has that once.
func (c *mptraceCase) readExit(t *testing.T, base string) {
	t.Helper()
	text, err := os.ReadFile(base + "." + c.build + ".exit.txt")
	if os.IsNotExist(err) && c.build == "fixed64" {
		text, err = os.ReadFile(base + ".asis64.exit.txt")
	}
	if err != nil {
		t.Fatal(err)
	}
	exit, stderr, _ := strings.Cut(string(text), "\n")
	if _, err := fmt.Sscanf(exit, "exit=%d", &c.code); err != nil {
		t.Fatalf("%s: %q: %v", c.name, exit, err)
	}
	c.stderr = stderr
}

// crashed reports whether the real tool crashed.
func (c *mptraceCase) crashed() bool { return c.code > 100 }

func (c *mptraceCase) want(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(c.output)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMptraceLegacy compares byte for byte with each build of the real tool, for files and
// pipes, with messages and exit code. Where the real tool crashes, ours does not.
func TestMptraceLegacy(t *testing.T) { testMptraceLegacy(t, mptraceCases(t, mpatrolFolders...)) }

func testMptraceLegacy(t *testing.T, cases []mptraceCase) {
	t.Helper()
	for _, c := range cases {
		want := c.want(t)
		in, err := os.ReadFile(c.input)
		if err != nil {
			t.Fatal(err)
		}
		flags := append([]string{"mptrace", "--legacy=" + c.build}, c.flags...)
		for _, way := range []struct {
			name, stdin string
			args        []string
		}{
			{"file", "", append(flags, c.input)},
			{"pipe", string(in), append(flags, "-")},
		} {
			out, errOut, code := runRtrace(way.stdin, way.args...)
			if c.crashed() {
				if code != cli.Failed || !strings.HasPrefix(out, want) || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, "at which the real mptrace crashes") {
					t.Errorf("%s, %s: exit code %d, %q, %s", c.name, way.name, code, errOut, out)
				}
				continue
			}
			if d := cmp.Diff(want, out); d != "" {
				t.Errorf("%s, %s (-want +got):\n%s", c.name, way.name, d)
			}
			if errOut != c.stderr || code != c.code {
				t.Errorf("%s, %s: exit code %d, %q; want %d, %q", c.name, way.name, code, errOut, c.code, c.stderr)
			}
		}
	}
}

// reference returns the cases of the build whose output is right: the corrected one, or
// another if the corpus has only that because both printed the same. Only one build reads
// some files.
func reference(all []mptraceCase) []mptraceCase {
	rank := func(c *mptraceCase) int {
		n := map[string]int{"fixed64": 3, "asis64": 2, "asis32": 1}[c.build]
		if c.code == cli.OK {
			n += 10
		}
		return n
	}
	best := map[string]*mptraceCase{}
	for i := range all {
		key := all[i].input + fmt.Sprint(all[i].flags)
		if old := best[key]; old == nil || rank(&all[i]) > rank(old) {
			best[key] = &all[i]
		}
	}
	var out []mptraceCase
	for i := range all {
		if best[all[i].input+fmt.Sprint(all[i].flags)] == &all[i] {
			out = append(out, all[i])
		}
	}
	return out
}

// TestMptraceLegacyBuild: the default build is the one that fits the words of the trace.
func TestMptraceLegacyBuild(t *testing.T) {
	for _, c := range mptraceCases(t, mpatrolFolders...) {
		named, _, namedCode := runRtrace("", append([]string{"mptrace", "--legacy=" + c.build, c.input}, c.flags...)...)
		out, _, code := runRtrace("", append([]string{"mptrace", "--legacy", c.input}, c.flags...)...)
		fits := c.build == "fixed64" || c.build == "asis32"
		if fits && (out != named || code != namedCode) {
			t.Errorf("%s: exit code %d, other output than with --legacy=%s", c.name, code, c.build)
		}
	}
}

// TestMptraceDifferences: without --legacy the output differs exactly where the table lists
// it.
func TestMptraceDifferences(t *testing.T) {
	testMptraceDifferences(t, mptraceCases(t, mpatrolFolders...), readDifferences(t, "mptrace-differences.txt"))
}

func testMptraceDifferences(t *testing.T, cases []mptraceCase, table map[string]difference) {
	t.Helper()
	for _, c := range reference(cases) {
		want := c.want(t)
		got, errOut, code := runRtrace("", append([]string{"mptrace", c.input}, c.flags...)...)
		less, more := lineDiff(want, got)
		row, listed := table[c.name]
		delete(table, c.name)
		if !listed {
			row.code = c.code
		}
		if len(less) != row.less || len(more) != row.more || code != row.code {
			t.Errorf("%s: %d lines less, %d more, exit code %d; the table says %d, %d, %d (%s)\nonly theirs:\n%s\nonly ours:\n%s\nstderr: %s",
				c.name, len(less), len(more), code, row.less, row.more, row.code, row.why, strings.Join(less, ""), strings.Join(more, ""), errOut)
		}
		if !listed && got != want {
			t.Errorf("%s: the order of the lines differs:\n%s", c.name, cmp.Diff(want, got))
		}
		if !listed && (errOut == "") != (c.stderr == "") {
			t.Errorf("%s: %q, where the real tool says %q", c.name, errOut, c.stderr)
		}
		if listed && got == want && code == c.code && (errOut == "") == (c.stderr == "") {
			t.Errorf("%s: the table lists it, but nothing differs", c.name)
		}
	}
	for name := range table {
		t.Errorf("%s is in the table, but not in the corpus", name)
	}
}

// TestMptraceHATF: the Heap Allocation Trace Format is that of the real tool, with and
// without --legacy.
func TestMptraceHATF(t *testing.T) { testMptraceHATF(t, mpatrolFolders[0]) }

func testMptraceHATF(t *testing.T, folder string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.hatf"))
	if err != nil || len(all) < 2 {
		t.Fatalf("%d files in %s: %v", len(all), folder, err)
	}
	for _, path := range all {
		input, err := filepath.Abs(strings.TrimSuffix(path, ".hatf") + ".trace")
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, flags := range [][]string{nil, {"--legacy"}} {
			t.Run(fmt.Sprint(filepath.Base(path), flags), func(t *testing.T) {
				t.Chdir(t.TempDir()) // the file contains its own name
				_, errOut, code := runRtrace("", append([]string{"mptrace", "-H", filepath.Base(path), input}, flags...)...)
				got, err := os.ReadFile(filepath.Base(path))
				if err != nil || code != cli.OK || errOut != "" {
					t.Fatalf("%v, exit code %d, %q", err, code, errOut)
				}
				if d := cmp.Diff(string(want), string(got)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		}
	}
}

// The traces of mpatrol 1.3.0 belong to another project, so they are not in this corpus.
// Their output does not differ.
func TestMptraceSamples(t *testing.T) {
	corpus := os.Getenv("RTRACE_CORPUS")
	if corpus == "" {
		t.Skip("RTRACE_CORPUS does not name the folder of the samples of mpatrol 1.3.0")
	}
	folder := filepath.Join(corpus, "mpatrol", "samples-1.3.0")
	cases := mptraceCases(t, folder)
	testMptraceLegacy(t, cases)
	testMptraceDifferences(t, cases, nil)
	testMptraceHATF(t, folder)
}
