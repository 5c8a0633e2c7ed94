package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// leakedSizes are the allocations of a text and its leak summaries.
func leakedSizes(text string) (got []string) {
	for line := range strings.Lines(text) {
		if _, call, ok := strings.Cut(line, "("); ok && line[0] >= '0' && line[0] <= '9' {
			size, _, _ := strings.Cut(call, ")")
			got = append(got, size)
		}
		if strings.Contains(line, " leaked with ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	return got
}

// TestPostprocChoosesOfLeaks prints what src/ctx.c of the corpus allocates in each context
// and does not free. It frees in other contexts; in the original, freed blocks thus look
// like leaks.
func TestPostprocChoosesOfLeaks(t *testing.T) {
	file := filepath.Join(spRtraceCorpus, "context.rtrace")
	for flags, want := range map[string][]string{
		"-C 1":                       {"35", "# 1 block(s) leaked with total size of 35 bytes"},
		"-C 3":                       {"35", "40", "# 2 block(s) leaked with total size of 75 bytes"},
		"-C 1 -c":                    {"35", "# 1 block(s) leaked with total size of 35 bytes"},
		"-C 0":                       {"10", "60", "# 2 block(s) leaked with total size of 70 bytes"},
		"-C 0 -b 1":                  {"10", "60", "# 2 block(s) leaked with total size of 70 bytes"},
		"-C 1 --legacy":              {"20", "30", "35", "# 3 block(s) leaked with total size of 85 bytes"},
		"":                           {"10", "35", "40", "50", "60", "# 5 block(s) leaked with total size of 195 bytes"},
		"--exclude LIST":             {"10", "35", "40", "60", "# 4 block(s) leaked with total size of 145 bytes"},
		"--include LIST":             {"50", "# 1 block(s) leaked with total size of 50 bytes"},
		"--include LIST -c --legacy": {"20", "50", "# 2 block(s) leaked with total size of 70 bytes"},
	} {
		list := writeFile(t, "2\n6\n") // the allocations of 20 and 50 bytes, of which the first is freed
		args := append([]string{"postproc", "-l", file}, strings.Fields(strings.ReplaceAll(flags, "LIST", list))...)
		out, errOut, _ := runRtrace("", args...)
		if d := cmp.Diff(want, leakedSizes(out)); d != "" || errOut != "" {
			t.Errorf("%s: %q (-want +got):\n%s", flags, errOut, d)
		}
	}
}

// TestPostprocChoosesOfResources selects by resource and by context at once. Other resources
// are left out, also of sums.
func TestPostprocChoosesOfResources(t *testing.T) {
	const in = "version=2.0, pid=7, \n<1> : memory (x)\n<2> : fd (y)\n<4> : fp (z)\n@ 1 : busy\n@ 2 : idle\n" +
		"1. @1 f<memory>(10) = 0x1\n\n2. @1 f<fd>(20) = 0x1\n\n3. @1 f<fd>(30) = 0x2\n\n4. f<fp>(40) = 0x3\n\n5. free<fd>(0x1)\n\n6. @1 f<fp>(50) = 0x4\n\n"
	want := []string{"30", "50", "# 1 block(s) leaked with total size of 30 bytes", "# 1 block(s) leaked with total size of 50 bytes"}
	for _, more := range [][]string{nil, {"-c"}} {
		out := postprocText(t, in, append([]string{"-l", "-R", "6", "-C", "1"}, more...)...)
		if d := cmp.Diff(want, leakedSizes(out)); d != "" {
			t.Errorf("%v (-want +got):\n%s", more, d)
		}
		if strings.Contains(out, "memory") || strings.Contains(out, "idle") || !strings.Contains(out, "@ 1 : busy\n") {
			t.Errorf("%v: declarations in\n%s", more, out)
		}
	}
}
