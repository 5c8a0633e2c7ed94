package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// TestAllocmapCorpus compares with the output of the real sp-rtrace-allocmap. Without
// --legacy marks are not pages with data, so the number of pages differs.
func TestAllocmapCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(spRtraceCorpus, "allocmap", "*.in"))
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		base := strings.TrimSuffix(file, ".in")
		name := filepath.Base(base)
		t.Run(name, func(t *testing.T) {
			read := func(suffix string) string {
				b, err := os.ReadFile(base + suffix)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			in, want, args := read(".in"), read(".txt"), append([]string{"allocmap"}, strings.Fields(read(".args"))...)
			out, errOut, code := runRtrace(in, append(args, "--legacy")...)
			if d := cmp.Diff(want, out); d != "" || code != cli.OK {
				t.Errorf("exit code %d, stderr %q (-want +got):\n%s", code, errOut, d)
			}
			if file, _, _ := runRtrace("", append(args, "--legacy", base+".in")...); file != out {
				t.Error("from a file it is not the same")
			}
			out, _, code = runRtrace(in, args...)
			if out == want || code != cli.OK {
				t.Errorf("without --legacy: exit code %d, the same: %v", code, out == want)
			}
		})
	}
}

func TestAllocmapRight(t *testing.T) {
	list := "# base=0x10000\n# top=0x1a000\n# low=0x14000\n# high=0x16800\n# keepcost=8192\n0x11010 8192\n"
	out, errOut, code := runRtrace(list, "allocmap", "-s")
	want := "0x00010000 | ###< > | T" + strings.Repeat(" ", 53) + "|\n"
	if code != cli.OK || errOut != "" || !strings.Contains(out, want) || !strings.Contains(out, "Parsed 1 unfreed allocations (largest being 8192 bytes),\nresiding on 3 pages.") {
		t.Errorf("exit code %d, stderr %q:\n%s", code, errOut, out)
	}
	// Without any values of the heap, the map begins with the first block and has no marks.
	out, _, code = runRtrace("0x7f0000012345 10\n0x7f0000014010 1\n", "allocmap")
	if code != cli.OK || !strings.Contains(out, "\n0x7f0000012000 |0 0"+strings.Repeat(" ", 61)+"|\n") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	// Far blocks are counted, and so are many empty lines.
	out, errOut, code = runRtrace("0x10010 10\n0x8000010 1\n0x7f0000014000 1\n", "allocmap", "-b", "0x10000")
	if code != cli.OK || !strings.Contains(out, "... 509 more empty lines\n") || !strings.Contains(errOut, "1 blocks are not in the heap") {
		t.Errorf("exit code %d, stderr %q:\n%s", code, errOut, out)
	}
}

// TestAllocmapTrace checks the state of the heap and the live blocks of a trace.
func TestAllocmapTrace(t *testing.T) {
	file := filepath.Join(spRtraceCorpus, "synthetic", "hinf64.rtrace")
	out, errOut, code := runRtrace("", "allocmap", file)
	// Heap 0x…, seven leaks in its first two pages, top 33 pages above.
	if code != cli.OK || errOut != "" || !strings.Contains(out, " |##") || !strings.Contains(out, "T") || !strings.Contains(out, "Parsed 7 unfreed allocations (largest being 256 bytes)") {
		t.Errorf("exit code %d, stderr %q:\n%s", code, errOut, out)
	}
	// The bug of 64-bit writers; the same trace as a text and from a pipe.
	for _, args := range [][]string{{filepath.Join(spRtraceCorpus, "heapinfo.rtrace")}} {
		if broken, errOut, code := runRtrace("", append([]string{"allocmap"}, args...)...); code != cli.OK || errOut != "" || !strings.Contains(broken, " |##") {
			t.Errorf("%v: exit code %d, stderr %q:\n%s", args, code, errOut, broken)
		}
	}
	text, _, _ := runRtrace("", "postproc", file)
	if got, _, code := runRtrace(text, "allocmap"); got != out || code != cli.OK {
		t.Errorf("text: exit code %d (-binary +text):\n%s", code, cmp.Diff(out, got))
	}
	two, _, code := runRtrace("", "allocmap", file, file)
	if code != cli.OK || !strings.Contains(two, " |11") || !strings.Contains(two, "Parsed 14 ") {
		t.Errorf("two: exit code %d:\n%s", code, two)
	}
	moved, _, code := runRtrace("", "allocmap", "-b", "0x10000", "-t", "0xffffffffffffffff", file)
	if code != cli.OK || strings.Contains(moved, "|##") {
		t.Errorf("another base: exit code %d:\n%s", code, moved)
	}
}

func TestAllocmapOtherResources(t *testing.T) {
	in := jsonlTrace(t,
		&trace.Record{Kind: trace.KindResource, PID: 7, Resource: trace.Resource{ID: 5, Type: "fd"}},
		&trace.Record{Kind: trace.KindCall, PID: 7, Call: trace.Call{Seq: 1, Op: trace.OpAlloc, Function: "open", Resource: 5, ID: 3, Size: 1}},
		&trace.Record{Kind: trace.KindCall, PID: 7, Call: trace.Call{Seq: 2, Op: trace.OpMove, Function: "realloc", Resource: 4, ID: 0x5000, Size: 1}},
		&trace.Record{Kind: trace.KindEnd},
	)
	out, errOut, code := runRtrace(in, "allocmap")
	if code != cli.OK || errOut != "" || !strings.Contains(out, "\n0x00004000 |##") || !strings.Contains(out, "Parsed 1 ") {
		t.Errorf("exit code %d, stderr %q:\n%s", code, errOut, out)
	}
}

func TestAllocmapFailures(t *testing.T) {
	for _, tt := range []struct {
		name, stdin string
		args        []string
		code        cli.ExitCode
		stderr      string
	}{
		{"empty", "", nil, cli.Failed, "empty"},
		{"no block", "# base=0x1000\n", nil, cli.Failed, "nothing to draw"},
		{"no list", "0x10 20\nsomething\n", nil, cli.Failed, "line 2"},
		{"no size", "0x10\n", nil, cli.Failed, "line 1"},
		{"size below zero", "0x10 -1\n", nil, cli.Failed, "line 1"},
		{"no number", "# base=0x10\n# top=high\n", nil, cli.Failed, "line 2"},
		{"other comment", "# base=0x10\n# bottom=0x10\n", nil, cli.Failed, "line 2"},
		{"long line", "0x10 " + strings.Repeat("1", 1<<17), nil, cli.Failed, "reading standard input"},
		{"missing file", "", []string{"nonesuch"}, cli.Failed, "no such file"},
		{"page size", "0x10 1\n", []string{"-p", "17"}, cli.Usage, "1 to 16 KB"},
		{"page size 0", "0x10 1\n", []string{"-p", "0"}, cli.Usage, "1 to 16 KB"},
		{"no address", "0x10 1\n", []string{"-h", "up"}, cli.Usage, "-h up: not an address"},
		{"no trace", "hello\n", nil, cli.Failed, "unknown format"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errOut, code := runRtrace(tt.stdin, append([]string{"allocmap"}, tt.args...)...)
			if code != tt.code || out != "" || !strings.Contains(errOut, tt.stderr) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errOut)
			}
		})
	}
	if out, _, code := runRtrace("0xffffffffffffffff 18446744073709551615\n0x0 1\n", "allocmap"); code != cli.OK || len(out) > 5000 {
		t.Errorf("at both ends: exit code %d, %d bytes", code, len(out))
	}
}

// TestAllocmapAnimate runs the animation in a shell: one map after the other, at the same
// place.
func TestAllocmapAnimate(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatalf("a shell runs the animation: %v", err)
	}
	dir := t.TempDir()
	var files []string
	for name, list := range map[string]string{"a EOF": "0x12010 5000\n", "b": "0x10010 1\n0x12010 1\n"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	slices.Sort(files)
	var program, errOut bytes.Buffer
	args := append([]string{"rtrace-allocmap-animate", "--pause", "0"}, files...)
	if code := run(t.Context(), cli.Streams{Out: &program, Err: &errOut}, args); code != cli.OK {
		t.Fatalf("exit code %d, %s", code, &errOut)
	}
	for _, name := range []string{"clear", "sleep"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+" $*\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(sh)
	cmd.Stdin, cmd.Env = &program, []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	frame := func(name, cells string) string {
		line := strings.Repeat("-", 64)
		return "clear\n[" + name + "]\n           ." + line + ".\n0x00010000 |" + cells + strings.Repeat(" ", 64-len(cells)) + "|\n           '" + line + "'\nsleep 0\n"
	}
	if d := cmp.Diff(frame("a EOF", "  ##")+frame("b", "# #"), string(out)); d != "" {
		t.Errorf("what is shown (-want +got):\n%s", d)
	}
}
