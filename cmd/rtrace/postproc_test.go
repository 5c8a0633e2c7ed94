package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	jsonl "rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

var leaksFile = filepath.Join(spRtraceCorpus, "c-leaks.rtrace")

// body removes the header line.
func body(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

func headerOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// eventsOf returns the text from the first call on.
func eventsOf(text string) string {
	if i := strings.Index(text, "\n1. "); i >= 0 {
		return text[i:]
	}
	return ""
}

func TestPostprocUsage(t *testing.T) {
	for _, args := range [][]string{
		{"a", "b"}, {"-i", "a", "b"}, {"--nonesuch"}, {"-i"}, {"-s", "size"}, {"-c", "-s", "x"}, {"-C", "g"}, {"-b", "-2"}, {"-f", "x"}, {"-c", "-f", "sprtrace"}, {"--call-address", "a:1"},
	} {
		out, errOut, code := runRtrace("", append([]string{"postproc"}, args...)...)
		if code != cli.Usage || out != "" || !strings.Contains(errOut, "rtrace postproc") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, out, errOut)
		}
	}
	out, errOut, code := runRtrace("", "postproc", "-h")
	if code != cli.OK || errOut != "" || !strings.Contains(out, "--filter-leaks") {
		t.Errorf("-h: exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
	s := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, InTerminal: true}
	if code := run(context.Background(), s, []string{"rtrace", "postproc"}); code != cli.Usage {
		t.Errorf("standard input is a terminal: exit code %d", code)
	}
}

func TestPostprocFailures(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noHeader := func() string {
		in, err := os.ReadFile(leaksFile)
		if err != nil {
			t.Fatal(err)
		}
		return string(in[:16]) // the handshake
	}
	for _, tt := range []struct {
		name, stdin string
		args        []string
		code        cli.ExitCode
		stderr      string
	}{
		{"missing", "", []string{filepath.Join(dir, "missing")}, cli.Failed, "no such file"},
		{"missing, legacy", "", []string{"--legacy", filepath.Join(dir, "missing")}, cli.Failed, "no such file"},
		{"folder", "", []string{dir}, cli.Failed, "directory"},
		{"empty", "", []string{write("empty", "")}, cli.Failed, "empty"},
		{"empty pipe", "", nil, cli.Failed, "empty"},
		{"empty pipe, leaks", "", []string{"-l"}, cli.Failed, "empty"},
		{"no trace", "", []string{write("passwd", "daemon:x:1:1:daemon:/usr/sbin:/bin/sh\n")}, cli.Failed, "unknown format"},
		{"no process, legacy", noHeader(), []string{"--legacy"}, cli.Failed, "failed to parse log header"},
		{"output folder", "", []string{"-o", filepath.Join(dir, "no", "x"), leaksFile}, cli.Failed, "no such file"},
		{"output exists", "", []string{"-o", write("exists", "x"), leaksFile}, cli.Failed, "exists"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errOut, code := runRtrace(tt.stdin, append([]string{"postproc"}, tt.args...)...)
			if code != tt.code || out != "" || !strings.Contains(errOut, tt.stderr) || strings.Count(errOut, "\n") > 2 {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errOut)
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(dir, "exists")); err != nil || string(b) != "x" {
		t.Errorf("the file that exists holds %q, %v", b, err)
	}
}

// TestPostprocCut: everything that is whole is printed, then a note.
func TestPostprocCut(t *testing.T) {
	in, err := os.ReadFile(leaksFile)
	if err != nil {
		t.Fatal(err)
	}
	whole, _, _ := runRtrace("", "postproc", leaksFile)
	for _, n := range []int{len(in) - 3, 1501, 702, 201} {
		out, errOut, code := runRtrace(string(in[:n]), "postproc")
		if code != cli.Incomplete || !strings.Contains(errOut, "standard input is cut") {
			t.Errorf("%d bytes: exit code %d, stderr %q", n, code, errOut)
		}
		// The last call may have lost its stack.
		printed, all := eventsOf(out), eventsOf(whole)
		if i := strings.LastIndex(strings.TrimSuffix(printed, "\n\n"), "\n\n"); i > 0 && !strings.HasPrefix(all, printed[:i]) {
			t.Errorf("%d bytes: not the start of all events:\n%s", n, printed)
		}
		if n > 1000 && !strings.Contains(printed, "\n9. ") {
			t.Errorf("%d bytes: events are missing:\n%s", n, printed)
		}
		if _, _, code := runRtrace(string(in[:n]), "postproc", "-l"); code != cli.Incomplete {
			t.Errorf("%d bytes, -l: exit code %d", n, code)
		}
		if _, errOut, code := runRtrace(string(in[:n]), "postproc", "--legacy"); code != cli.OK || errOut != "" {
			t.Errorf("%d bytes, --legacy: exit code %d, stderr %q", n, code, errOut)
		}
	}
	// A text that ends in a frame.
	text := whole[:strings.LastIndex(whole, "\t0x")+8]
	out, errOut, code := runRtrace(text, "postproc")
	if code != cli.Incomplete || !strings.Contains(errOut, "is cut") {
		t.Errorf("text: exit code %d, stderr %q", code, errOut)
	}
	if want := text[:strings.LastIndex(text, "\n")+1] + "\n"; out != want {
		t.Errorf("text (-want +got):\n%s", cmp.Diff(want, out))
	}
}

// TestPostprocText: printing the output again gives the same output.
func TestPostprocText(t *testing.T) {
	for _, c := range corpusCases(t) {
		if !strings.HasSuffix(c.input, ".rtrace") || strings.Contains(c.name, "trunc") || strings.Contains(c.name, "unk") {
			continue
		}
		if strings.Contains(c.name, "type0") {
			continue // calls without type read as frees
		}
		if strings.Contains(c.name, "R80") || strings.Contains(c.name, "R100") {
			continue // a single resource is number 1 then
		}
		once, _, code := runRtrace("", append([]string{"postproc", c.input}, c.flags...)...)
		if code != cli.OK {
			t.Fatalf("%s: exit code %d", c.name, code)
		}
		// The leak summary is temporary, so it needs -l again.
		twice, errOut, code := runRtrace(once, append([]string{"postproc"}, c.flags...)...)
		if d := cmp.Diff(once, twice); d != "" || code != cli.OK || errOut != "" {
			t.Errorf("%s: exit code %d, stderr %q, second pass (-first +second):\n%s", c.name, code, errOut, d)
		}
	}
}

// TestPostprocLeaksOfText: filtering the text gives the same as filtering the trace.
func TestPostprocLeaksOfText(t *testing.T) {
	for _, n := range []string{"c-leaks", "multi", "context", "file-args", "toggle-0"} {
		file := filepath.Join(spRtraceCorpus, n+".rtrace")
		want, _, _ := runRtrace("", "postproc", "-l", file)
		plain, _, _ := runRtrace("", "postproc", file)
		got, _, code := runRtrace(plain, "postproc", "-l")
		if d := cmp.Diff(want, got); d != "" || code != cli.OK {
			t.Errorf("%s: exit code %d (-binary +text):\n%s", n, code, d)
		}
	}
}

// TestPostprocOrder: without --legacy a text is not sorted: at the end of the day, that
// would move calls before earlier ones. The leak is the block that is still live at the end.
func TestPostprocOrder(t *testing.T) {
	text := "version=2.0, pid=7, \n<1> : memory (x)\n" +
		"1. [23:59:59.999] malloc(8) = 0x10\n\n2. [00:00:00.001] free(0x10)\n\n3. [00:00:00.002] malloc(9) = 0x10\n\n"
	out, _, code := runRtrace(text, "postproc", "-l")
	if want := "<1> : memory (x)\n3. [00:00:00.002] malloc(9) = 0x10\n\n# Resource - memory (x):\n# 1 block(s) leaked with total size of 9 bytes\n"; body(out) != want || code != cli.OK {
		t.Errorf("exit code %d (-want +got):\n%s", code, cmp.Diff(want, body(out)))
	}
	out, _, _ = runRtrace(text, "postproc", "--legacy")
	if want := "<1> : memory (x)\n2. [00:00:00.001] free(0x10)\n\n3. [00:00:00.002] malloc(9) = 0x10\n\n1. [23:59:59.999] malloc(8) = 0x10\n\n"; body(out) != want {
		t.Errorf("legacy (-want +got):\n%s", cmp.Diff(want, body(out)))
	}
}

// TestPostprocLegacyComments: a comment comes before the first call whose index is above
// that of the call before the comment, and delays later comments.
func TestPostprocLegacyComments(t *testing.T) {
	text := "version=2.0, pid=7, timestamp=21.11.2026 09:32:17, \n## a\n0. f(0x1)\n\n## b\n: /x => 0x1-0x2\n2. f(0x1)\nfree text\n1. f(0x1)\n\n# gone\n"
	out, errOut, code := runRtrace(text, "postproc", "--legacy")
	want := "version=2.0, timestamp=27.5.19 09:32:17, pid=7, \n: /x => 0x1-0x2\n0. f(0x1)\n\n## a\n## b\n1. f(0x1)\n\n2. f(0x1)\n\nfree text\n"
	if out != want || code != cli.OK {
		t.Errorf("exit code %d (-want +got):\n%s", code, cmp.Diff(want, out))
	}
	if errOut != "WARNING: unrecognized record, assuming it's a comment: free text\n" {
		t.Errorf("stderr %q", errOut)
	}
	// Without --legacy everything stays in its place.
	out, errOut, code = runRtrace(text, "postproc")
	want = "version=2.0, timestamp=2026.11.21 09:32:17, pid=7, \n## a\n: /x => 0x1-0x2\n0. f(0x1)\n\n## b\n2. f(0x1)\n\n## free text\n1. f(0x1)\n\n## unmatched frees: 3\n"
	if out != want || code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, stderr %q (-want +got):\n%s", code, errOut, cmp.Diff(want, out))
	}
}

func TestPostprocFilterHeader(t *testing.T) {
	text := "version=2.0, pid=7, filter=leaks|compress|resolve, \n## unmatched frees: 3\n1. malloc(1) = 0x10\n\n"
	out, _, _ := runRtrace(text, "postproc")
	if want := "version=2.0, pid=7, filter=leaks|resolve, \n## unmatched frees: 3\n1. malloc(1) = 0x10\n\n"; out != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, out))
	}
	out, _, _ = runRtrace("version=2.0, pid=7, filter=compress, \n1. malloc(1) = 0x10\n\n", "postproc", "-l", "-r")
	if h := headerOf(out); h != "version=2.0, pid=7, filter=leaks|resolve, " {
		t.Errorf("header %q", h)
	}
	if !strings.Contains(body(out), "1. malloc(1) = 0x10\n") {
		t.Errorf("body %q", body(out))
	}
}

func TestPostprocResolve(t *testing.T) {
	out, errOut, code := runRtrace("version=2.0, pid=7, \n1. malloc(1) = 0x10\n\t0x123\n\t0x456 main() at a.c:7\n\n", "postproc", "-r")
	want := "version=2.0, pid=7, filter=resolve, \n1. malloc(1) = 0x10\n\t0x123 in ??\n\t0x456 main() at a.c:7\n\n"
	if out != want || code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, stderr %q (-want +got):\n%s", code, errOut, cmp.Diff(want, out))
	}
}

// jsonlTrace is a trace as the tracer could have recorded it.
func jsonlTrace(t *testing.T, records ...*trace.Record) string {
	t.Helper()
	var b bytes.Buffer
	w := jsonl.New(&b)
	for _, r := range append([]*trace.Record{
		{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, Origin: "tracer 1"}},
		{Kind: trace.KindProcess, PID: 7, Process: trace.Process{Name: "demo", Depth: 10}},
		{Kind: trace.KindResource, PID: 7, Resource: trace.Resource{ID: 4, Type: "memory", Desc: "x"}},
	}, records...) {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPostprocLive: moves are two calls, losses and unmappings are comments in their places,
// mappings come first, and the only resource is number 1.
func TestPostprocLive(t *testing.T) {
	call := func(seq uint64, c trace.Call) *trace.Record {
		c.Seq, c.Resource = seq, 4
		return &trace.Record{Kind: trace.KindCall, Time: int64(seq) * 1e6, PID: 7, Call: c}
	}
	in := jsonlTrace(t,
		call(1, trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: 0x10, Size: 1 << 33}),
		call(2, trace.Call{Op: trace.OpMove, Function: "realloc", OldID: 0x10, ID: 0x20, Size: 5, EntryTime: 1500000}),
		&trace.Record{Kind: trace.KindLost, Time: 2e6, PID: 7, Lost: trace.Lost{Count: 3, Reason: "ring full"}},
		&trace.Record{Kind: trace.KindMapping, PID: 7, Mapping: trace.Mapping{Start: 0x5000, End: 0x6000, Offset: 0x1000, Base: 0x4000, Path: "/lib/x"}},
		call(3, trace.Call{Op: trace.OpFree, Function: "free", ID: 0x99}),
		&trace.Record{Kind: trace.KindUnmapping, PID: 7, Mapping: trace.Mapping{Start: 0x5000, End: 0x6000, Path: "/lib/x"}},
		&trace.Record{Kind: trace.KindEnd},
	)
	front := "version=2.0, arch=x86_64, process=demo, pid=7, %sbacktrace depth=10, origin=tracer 1, \n<1> : memory (x)\n: /lib/x => 0x4000-0x6000\n"
	want := strings.Replace(front, "%s", "", 1) +
		"1. [00:00:00.001] malloc(8589934592) = 0x10\n\n2. [00:00:00.001] realloc(0x10)\n\n3. [00:00:00.002] realloc(5) = 0x20\n\n" +
		"## lost: 3 events (ring full)\n4. [00:00:00.003] free(0x99)\n\n## unmapped: /lib/x => 0x5000-0x6000\n## unmatched frees: 1\n"
	out, errOut, code := runRtrace(in, "postproc")
	if d := cmp.Diff(want, out); d != "" || code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, stderr %q (-want +got):\n%s", code, errOut, d)
	}
	want = strings.Replace(front, "%s", "filter=leaks, ", 1) + "3. [00:00:00.002] realloc(5) = 0x20\n\n" +
		"## lost: 3 events (ring full)\n## unmapped: /lib/x => 0x5000-0x6000\n## unmatched frees: 1\n" +
		"# Resource - memory (x):\n# 1 block(s) leaked with total size of 5 bytes\n"
	out, _, _ = runRtrace(in, "postproc", "-l")
	if d := cmp.Diff(want, out); d != "" {
		t.Errorf("-l (-want +got):\n%s", d)
	}
}

// TestPostprocByteOrder: the original refuses traces of the other byte order; without
// --legacy they are read.
func TestPostprocByteOrder(t *testing.T) {
	handshake := "\xf0\x0e\x02\x00\x06x86_64\x01\x08\x00\x00\x00"
	process := "FNIP" + "\x00\x00\x00\x14" + "\x00\x00\x00\x07" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x0a" + "\x00\x02a\x00"
	out, _, code := runRtrace(handshake+process, "postproc")
	if !strings.Contains(out, "process=a, pid=7, ") || code != cli.OK {
		t.Errorf("exit code %d, stdout %q", code, out)
	}
	out, errOut, code := runRtrace(handshake+process, "postproc", "--legacy")
	if out != "" || code != cli.Failed || !strings.Contains(errOut, "unsupported architecture") {
		t.Errorf("legacy: exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
}
