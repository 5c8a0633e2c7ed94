package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// TestCalltreeCorpus compares byte for byte with the original rtrace-calltree.
func TestCalltreeCorpus(t *testing.T) {
	want, err := filepath.Glob(filepath.Join(spRtraceCorpus, "out/*/calltree-*.dot"))
	if err != nil || len(want) != 56 {
		t.Fatalf("%d graphs in the corpus, %v", len(want), err)
	}
	for _, path := range want {
		kind := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "calltree-"), ".dot")
		flag := "--type=" + kind
		if kind == "bt" {
			flag = "--direction=bt"
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		input := filepath.Join(filepath.Dir(path), "lcr.txt")
		got, errOut, code := runRtrace("", "calltree", "--limit=0.1", flag, input)
		if d := cmp.Diff(string(text), got); d != "" || errOut != "" || code != cli.OK {
			t.Errorf("%s: exit code %d, %q (-want +got)\n%s", path, code, errOut, d)
		}
	}
}

// A binary trace gives the sums that the original has for its text.
func TestCalltreeBinary(t *testing.T) {
	traces, err := filepath.Glob(filepath.Join(spRtraceCorpus, "out/*/lcr.txt"))
	if err != nil || len(traces) != 14 {
		t.Fatalf("%d texts in the corpus, %v", len(traces), err)
	}
	for _, text := range traces {
		name := filepath.Base(filepath.Dir(text))
		sums := func(args ...string) string {
			_, errOut, code := runRtrace("", append([]string{"calltree", "--verbose", "-o", filepath.Join(t.TempDir(), "dot")}, args...)...)
			if code != cli.OK {
				t.Errorf("%s: exit code %d, %s", name, code, errOut)
			}
			lines := strings.Split(strings.TrimSpace(errOut), "\n") // warnings, and then
			sums, _, _ := strings.Cut(lines[len(lines)-1], " through")
			return sums
		}
		want, got := sums(text), sums("-l", filepath.Join(spRtraceCorpus, name+".rtrace"))
		if want == "" || got != want {
			t.Errorf("%s: %q, the text has %q", name, got, want)
		}
	}
}

func TestCalltreeUsage(t *testing.T) {
	input := filepath.Join(spRtraceCorpus, "out/c-leaks/lcr.txt")
	for _, flags := range [][]string{
		{"--type=html"},
		{"--direction=lr"},
		{"--limit=-1"},
		{"--limit=101"},
		{"--limit=NaN"},
		{"--edge-limit=x"},
		{"--depth=0"},
		{"-n", "-1"},
		{"--own-alloc-limit=0.5"},
		{"--leafs=maybe"},
		{"--size-range=5"},
		{"--size-range=9-5"},
		{"--size-range=a-b"},
		{"--size-range=0-0"},
		{"--resource=nothing"},
		{input},
	} {
		out, errOut, code := runRtrace("", append(append([]string{"calltree"}, flags...), input)...)
		if code != cli.Usage || out != "" || strings.Count(errOut, "\n") > 2 {
			t.Errorf("%v: exit code %d, %q, %q", flags, code, out, errOut)
		}
	}
}

// TestCalltreeExplains checks which nodes refer to another one, and the number of calls
// read.
func TestCalltreeExplains(t *testing.T) {
	const text = "version=2.0, arch=x86_64, \n1. malloc(8) = 0x10\n\t0x1 inner() at a.c:1\n\t0x2 main() at a.c:2\n\n2. malloc(8) = 0x20\n\t0x2 main() at a.c:2\n\n"
	_, errOut, code := runRtrace(text, "calltree", "--progress=yes", "--node=main() at a.c:2", "--show-references")
	want := []string{"rtrace calltree: 2 calls read", "N2 main() at a.c:2: 16 bytes (100.00%), 2 allocations (100.00%)"}
	for _, line := range append(want, "\ta parent of N0 malloc", "\ta parent of N1 inner() at a.c:1") {
		if !strings.Contains("\n"+errOut, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, errOut)
		}
	}
	if code != cli.OK || strings.Contains(errOut, "a child of") {
		t.Errorf("exit code %d:\n%s", code, errOut)
	}
	_, errOut, code = runRtrace(text, "calltree", "--node=main")
	if want := "rtrace calltree: warning: no node is called \"main\"; --node='*' prints all nodes with their full names\n"; code != cli.OK || errOut != want {
		t.Errorf("a part of a name: exit code %d, %q; want %q", code, errOut, want)
	}
}
