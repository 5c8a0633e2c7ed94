package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// pagemapFolder is a folder with the real trace and its attachments, for tests that change
// some of them.
func pagemapFolder(t *testing.T) (dir, text string) {
	t.Helper()
	dir = t.TempDir()
	for from, to := range map[string]string{
		"pagemap.rtrace": "pagemap.rtrace", "27506-pagemap-maps-0": "27506-pagemap-maps-0",
		"27506-pagemap-pageflags-0": "27506-pagemap-pageflags-0", "out/pagemap/l.txt": "l.txt", "out/pagemap/plain.txt": "plain.txt",
	} {
		b, err := os.ReadFile(filepath.Join(spRtraceCorpus, filepath.FromSlash(from)))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, filepath.Join(dir, "l.txt")
}

// TestPagemapCorpus compares with the output of the real sp-rtrace-pagemap, for its text and
// for the binary trace, which needs no other program first.
func TestPagemapCorpus(t *testing.T) {
	dir, _ := pagemapFolder(t)
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"pages", []string{"-p", "-s"}},
		{"pages", []string{"--pages", "--summary", "--legacy"}},
		{"density", []string{"-d", "-T", "3", "-B", "2"}},
		{"density", []string{"--density", "--highest=3", "--botton=2"}},
		{"count", []string{"-c"}},
	} {
		want := corpusText(t, "out/pagemap/pagemap-"+tt.want+".txt")
		for _, in := range []string{"l.txt", "plain.txt", "pagemap.rtrace"} {
			out, errOut, code := runRtrace("", append([]string{"pagemap", "-i", filepath.Join(dir, in)}, tt.args...)...)
			if d := cmp.Diff(want, out); d != "" || code != cli.OK || errOut != "" {
				t.Errorf("%v %s: exit code %d, stderr %q (-want +got):\n%s", tt.args, in, code, errOut, d)
			}
		}
	}
}

// TestPagemapFilterCorpus prints the trace without calls outside the heap. Without --legacy
// comments stay before the mappings, where postproc leaves them.
func TestPagemapFilterCorpus(t *testing.T) {
	_, text := pagemapFolder(t)
	want := corpusText(t, "out/pagemap/pagemap-filter-heap.txt")
	for _, filter := range [][]string{{"-N", "heap"}, {"-A", "556393971a60"}, {"-A", "0x556393971A60", "-P", "RUl"}} {
		out, errOut, code := runRtrace("", append([]string{"pagemap", text, "--legacy"}, filter...)...)
		if d := cmp.Diff(want, out); d != "" || code != cli.OK || errOut != "" {
			t.Errorf("%v: exit code %d, stderr %q (-want +got):\n%s", filter, code, errOut, d)
		}
		out, _, _ = runRtrace("", append([]string{"pagemap", text}, filter...)...)
		if less, more := lineDiff(want, out); len(less) != 0 || len(more) != 0 {
			t.Errorf("%v without --legacy: less %q, more %q", filter, less, more)
		}
	}
	for _, tt := range []struct {
		args  []string
		calls int
	}{
		{[]string{"-N", "stack"}, 0},
		{[]string{"-N", "heap", "-A", "1"}, 7},
		{[]string{"-P", "n"}, 0},
		{[]string{"-P", "nb"}, 7},
		{[]string{"-A", "0x1"}, 0},
	} {
		out, _, code := runRtrace("", append([]string{"pagemap", text}, tt.args...)...)
		if n := strings.Count(out, ") = 0x"); n != tt.calls || code != cli.OK {
			t.Errorf("%v: exit code %d, %d calls, want %d", tt.args, code, n, tt.calls)
		}
	}
	// Frees stay, except with --legacy. If a trace has frees, its pages mean little.
	plain := filepath.Join(filepath.Dir(text), "plain.txt")
	all, _, _ := runRtrace("", "pagemap", "-N", "heap", plain)
	only, _, _ := runRtrace("", "pagemap", "-N", "heap", "--legacy", plain)
	if strings.Count(all, ". [") <= strings.Count(only, ". [") || !strings.Contains(all, " free(0x") || strings.Contains(only, " free(0x") {
		t.Errorf("with frees:\n%s\nwithout:\n%s", all, only)
	}
	if _, errOut, code := runRtrace("", "pagemap", "-P", "b", plain); code != cli.OK || !strings.Contains(errOut, "warning: the pages are from the end") {
		t.Errorf("exit code %d, stderr %q", code, errOut)
	}
	if _, errOut, _ := runRtrace("", "pagemap", "-q", "-P", "b", plain); errOut != "" {
		t.Errorf("stderr %q", errOut)
	}
}

// TestPagemapAreas: with a map the filters select areas, and shares are of these.
func TestPagemapAreas(t *testing.T) {
	_, text := pagemapFolder(t)
	out, _, code := runRtrace("", "pagemap", "-p", "-N", "[heap]", text)
	if code != cli.OK || strings.Count(out, " rw-p ") != 1 || !strings.Contains(out, "\n1. 556393971000-") ||
		!strings.Contains(out, "all                33     132     100%     100%\n") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	out, _, code = runRtrace("", "pagemap", "-s", "-N", "[heap]", text)
	// 30 pages without any flag, 3 with 0x400005828.
	want := "Memory page type summary\n========================\n\nCount    Flags\n      30 .....\n       3 UlMab\n\nLegend:\n" +
		"\tU : uptodate\n\tl : lru\n\tM : mmap\n\ta : anonymous\n\tb : swapbacked\n"
	if out != want || code != cli.OK {
		t.Errorf("exit code %d (-want +got):\n%s", code, cmp.Diff(want, out))
	}
	// -d needs no pageflags.
	if err := os.Remove(filepath.Join(filepath.Dir(text), "27506-pagemap-pageflags-0")); err != nil {
		t.Fatal(err)
	}
	want = corpusText(t, "out/pagemap/pagemap-density.txt")
	if out, errOut, code := runRtrace("", "pagemap", "-d", "-T3", "-B2", text); out != want || code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, stderr %q, the same: %v", code, errOut, out == want)
	}
}

func TestPagemapUsage(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"-p", "-d"},
		{"-d", "-c"},
		{"-p", "-P", "b"},
		{"-P", "?"},
		{"-A", "heap"},
		{"-s", "-T", "1"},
		{"-d", "-T", "-1"},
		{"-d", "a", "b"},
		{"-T", "3", "-N", "heap"},
		{"--nonesuch"},
	} {
		out, errOut, code := runRtrace("", append([]string{"pagemap"}, args...)...)
		if code != cli.Usage || out != "" || !strings.Contains(errOut, "rtrace pagemap") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, out, errOut)
		}
	}
	for flag, want := range map[string]string{"--help-filter": "--filter-address", "--help-pages": "U  uptodate", "-h": "rtrace pagemap --help=all"} {
		if out, errOut, code := runRtrace("", "pagemap", flag); code != cli.OK || errOut != "" || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", flag, code, out, errOut)
		}
	}
}

// TestPagemapAttachments: each problem with them is one clear line, and nothing is printed.
func TestPagemapAttachments(t *testing.T) {
	dir, text := pagemapFolder(t)
	maps, flags := filepath.Join(dir, "27506-pagemap-maps-0"), filepath.Join(dir, "27506-pagemap-pageflags-0")
	good, err := os.ReadFile(flags)
	if err != nil {
		t.Fatal(err)
	}
	put := func(path string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(what, message string, args ...string) {
		t.Helper()
		out, errOut, code := runRtrace("", append([]string{"pagemap"}, args...)...)
		first, _, _ := strings.Cut(errOut, "\n")
		if code != cli.Failed || out != "" || !strings.Contains(first, message) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", what, code, out, errOut)
		}
	}
	fails("no attachments", `has no attachment "maps"`, "-p", leaksFile)
	put(flags, nil)
	fails("empty pageflags", "not written by the pagemap module", "-p", text)
	fails("empty pageflags, filter", "not written by the pagemap module", "-P", "b", text)
	put(flags, bytes.Repeat([]byte("x"), 5000))
	fails("other pageflags", "not written by the pagemap module", "-c", text)

	// If one is cut, the existing part is printed, and the exit code shows the cut.
	put(flags, good[:400])
	out, errOut, code := runRtrace("", "pagemap", "-p", text)
	if code != cli.Incomplete || !strings.Contains(out, "|no page data|") || !strings.Contains(errOut, `lacks 13 of the areas`) {
		t.Errorf("cut: exit code %d, stderr %q:\n%s", code, errOut, out)
	}
	put(flags, good)
	put(maps, []byte("no maps\n"))
	fails("other maps", "it contains no line of /proc/PID/maps", "-p", text)
	if err := os.Remove(maps); err != nil {
		t.Fatal(err)
	}
	fails("no maps", "opening the attachment maps", "-p", text)
	if err := os.Mkdir(maps, 0o755); err != nil {
		t.Fatal(err)
	}
	fails("a folder", "not a regular file", "-d", text)
	put(filepath.Join(dir, "x.txt"), []byte("version=2.0, pid=1, \n& maps : /dev/zero\n1. malloc(1) = 0x10\n\n"))
	fails("a device", "not a regular file", "-d", filepath.Join(dir, "x.txt"))
}

// TestPagemapHostileMaps: an area of any size costs only what its blocks cost, and its name
// is escaped for the terminal.
func TestPagemapHostileMaps(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"maps":  "0-ffffffffffffffff rw-p 00000000 00:00 0 /x\x1b[2J\n",
		"t.txt": "version=2.0, pid=1, process=\x1b[2J, filter=leaks, \n& maps : maps\n1. malloc(18446744073709551615) = 0x10\n\n2. f\x1b(1) = 0xffffffffffff0000\n\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, errOut, code := runRtrace("", "pagemap", "-d", "-T", "1000000000", "-B", "1", filepath.Join(dir, "t.txt"))
	if code != cli.OK || errOut != "" || len(out) > 5000 || !strings.Contains(out, "... as above\n") || strings.Contains(out, "\x1b") {
		t.Errorf("exit code %d, stderr %q, %d bytes:\n%q", code, errOut, len(out), out[:min(len(out), 3000)])
	}
}

// TestPagemapStreams: a pipe is read, with attachments from the current folder, and a cut
// trace is reported.
func TestPagemapStreams(t *testing.T) {
	dir, text := pagemapFolder(t)
	t.Chdir(dir)
	in, err := os.ReadFile(filepath.Base(text))
	if err != nil {
		t.Fatal(err)
	}
	direct, _, _ := runRtrace("", "pagemap", "-d", "-T", "1", text)
	if out, errOut, code := runRtrace(string(in), "pagemap", "-d", "-T", "1"); out != direct || code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, stderr %q, the same: %v", code, errOut, out == direct)
	}
	if out, errOut, code := runRtrace(string(in), "pagemap", "-d", "-T", "1", "-o", "out.txt"); out != "" || code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
	if b, err := os.ReadFile("out.txt"); err != nil || string(b) != direct {
		t.Errorf("out.txt: %v", err)
	}
	raw, err := os.ReadFile("pagemap.rtrace")
	if err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := runRtrace(string(raw[:len(raw)-3]), "pagemap", "-p"); code == cli.OK || code == cli.Incomplete && !strings.Contains(errOut, "is cut") {
		t.Errorf("exit code %d, stderr %q, %d bytes", code, errOut, len(out))
	}
}

// TestPagemapWarnings: warnings have the name of the command, and there is one if no area is
// selected.
func TestPagemapWarnings(t *testing.T) {
	dir, text := pagemapFolder(t)
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"rtrace pagemap: warning: the pages are from the end of the trace, but ", []string{"-P", "a", filepath.Join(dir, "pagemap.rtrace")}},
		{"rtrace pagemap: warning: no writable area has a path with \"nope\"; -p -s prints all areas\n", []string{"-N", "nope", text}},
		{"rtrace pagemap: warning: no writable area has a path with \"nope\"; -p -s prints all areas\n", []string{"-N", "nope", "-p", text}},
		{"rtrace pagemap: warning: 0x12 is in no writable area; -p -s prints all areas\n", []string{"-A", "12", "-c", text}},
		{"", []string{"-N", "nope", "-q", text}},
		{"", []string{"-N", "stack", text}},
	} {
		_, errOut, code := runRtrace("", append([]string{"pagemap"}, tt.args...)...)
		if code != cli.OK || !strings.HasPrefix(errOut, tt.want) || tt.want == "" && errOut != "" {
			t.Errorf("%v: exit code %d, %q; want %q", tt.args, code, errOut, tt.want)
		}
	}
	out := filepath.Join(dir, "new")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := runRtrace("", "pagemap", "-N", "heap", "-o", out, text); code != cli.OK || !strings.HasPrefix(errOut, "rtrace pagemap: writing ") {
		t.Errorf("into a folder: exit code %d, %q", code, errOut)
	}
}
