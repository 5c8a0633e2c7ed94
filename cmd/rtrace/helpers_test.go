package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// TestHelpersCorpus compares byte for byte with the original's helper scripts, for the texts
// that they read and for the binary trace.
func TestHelpersCorpus(t *testing.T) {
	const binary = spRtraceCorpus + "/c-leaks-nosep.rtrace"
	out := func(name string) string { return filepath.Join(spRtraceCorpus, "out/c-leaks-nosep", name) }
	for _, c := range []struct {
		want string
		args []string
	}{
		{"rtrace-from-function.txt", []string{"from-function", "alloc_a", out("lcr.txt")}},
		{"rtrace-from-function.txt", []string{"from-function", "-l", "0x4007d5", binary}},
		{"rtrace-alloc-sizes.txt", []string{"alloc-sizes", out("plain.txt")}},
		{"rtrace-alloc-sizes.txt", []string{"alloc-sizes", binary, "16"}},
		{"rtrace-sort.txt", []string{"sort", out("lc.txt"), "5"}},
		{"rtrace-sort.txt", []string{"sort", binary, "5"}},
		{"rtrace-stats.txt", []string{"stats", out("lc.txt"), out("lc.txt")}},
	} {
		want := corpusText(t, "out/c-leaks-nosep/helpers/"+c.want)
		got, errOut, code := runRtrace("", c.args...)
		got = strings.ReplaceAll(got, "0x4007d5", "alloc_a") // where alloc_a calls malloc
		if d := cmp.Diff(want, got); d != "" || errOut != "" || code != cli.OK {
			t.Errorf("%v: exit code %d, %q (-want +got)\n%s", c.args, code, errOut, d)
		}
	}
}

func TestHelpersUsage(t *testing.T) {
	file := filepath.Join(spRtraceCorpus, "c-leaks.rtrace")
	for _, args := range [][]string{
		{"from-function"},
		{"from-function", ""},
		{"from-function", "main", file, file},
		{"from-function", "--resource=fd", "main", file},
		{"alloc-sizes", file, "x"},
		{"alloc-sizes", file, "-1"},
		{"alloc-sizes", file, "1", "2"},
		{"alloc-sizes", file, "18446744073709551615"},
		{"stats", file},
		{"stats"},
		{"sort", file, "0"},
		{"sort", file, "x"},
		{"sort", file, "1", "-1"},
		{"sort", file, "1", "1", "1"},
		{"function-address", file},
		{"function-address", file, ""},
	} {
		out, errOut, code := runRtrace("", args...)
		if code != cli.Usage || out != "" || strings.Count(errOut, "\n") > 2 {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out, errOut)
		}
	}
	for _, args := range [][]string{
		{"function-address", file, "main"},
		{"function-address", "/nonesuch", "main"},
		{"from-function", "main", "/nonesuch"},
		{"stats", file, "/nonesuch"},
	} {
		if out, errOut, code := runRtrace("", args...); code != cli.Failed || out != "" || errOut == "" {
			t.Errorf("%q: exit code %d, %q, %q", args, code, out, errOut)
		}
	}
}
