package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFoldedLikeCalltree: each function has the calls of the original's graph of counts. A
// function with several places is several nodes there, and a stack contains one of them.
func TestFoldedLikeCalltree(t *testing.T) {
	node := regexp.MustCompile(`(?m)^N\d+ \[label="(\w+)\(\)\\n[^"]*% \((\d+)\)"`)
	compared := 0
	for _, name := range []string{"c-leaks-nosep", "c-leaks-notime", "cxx", "dlopen-slow"} {
		folder := filepath.Join(spRtraceCorpus, "out", name)
		want := make(map[string]int)
		for _, m := range node.FindAllStringSubmatch(corpusText(t, "out/"+name+"/calltree-count.dot"), -1) {
			n, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			want[m[1]] += n
		}
		out, errOut, _ := runRtrace("", "convert", "-f", "folded", "--show-wrappers", "--value", "inuse_objects", "-o", "-", filepath.Join(folder, "lcr.txt"))
		got := make(map[string]int)
		for line := range strings.Lines(out) {
			at := strings.LastIndexByte(line, ' ')
			n, err := strconv.Atoi(strings.TrimSpace(line[at:]))
			if err != nil {
				t.Fatalf("%s: %q, %s", name, line, errOut)
			}
			seen := make(map[string]bool)
			for f := range strings.SplitSeq(line[:at], ";") {
				if _, ok := want[f]; ok && !seen[f] {
					seen[f] = true
					got[f] += n
				}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-calltree +folded):\n%s", name, d)
		}
		compared += len(want)
	}
	if compared < 10 {
		t.Errorf("only %d functions were compared", compared)
	}
}
