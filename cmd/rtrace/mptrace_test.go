package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// mtrcFile returns a stream of 64 bits with the given records.
func mtrcFile(records ...string) string {
	b := append([]byte("MTRC"), 1, 0, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, 10501)
	return string(b) + strings.Join(records, "") + "MTRC"
}

// Rows are printed as events come in, whatever the format, while the input waits for more.
func TestMptraceStreams(t *testing.T) {
	whole := mtrcFile("A\x01\x10\x08\x00\x00\x00\x00", "F\x01\x00\x00\x00\x00")
	jsonl := `{"format":"rtrace-jsonl","version":1}
{"kind":"header","pointer_size":8}
`
	call := `{"kind":"call","seq":%d,"op":"%s","function":"f","id":"0x10","size":%d}` + "\n"
	for _, tt := range []struct {
		name  string
		parts [3]string // header, event, event
	}{
		{"mtrc", [3]string{whole[:20], whole[20:28], whole[28:34]}},
		{"jsonl", [3]string{jsonl, fmt.Sprintf(call, 1, "alloc", 8), fmt.Sprintf(call, 2, "free", 0)}},
	} {
		in, feed := io.Pipe()
		read, out := io.Pipe()
		done := make(chan cli.ExitCode)
		go func() {
			code := run(context.Background(), cli.Streams{In: in, Out: out, Err: io.Discard}, []string{"rtrace", "mptrace", "-v"})
			out.Close()
			done <- code
		}()
		lines := bufio.NewScanner(read)
		expect := func(want string) {
			t.Helper()
			if !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Errorf("%s: %q, want %q", tt.name, lines.Text(), want)
			}
		}
		put := func(text string) {
			t.Helper()
			if _, err := io.WriteString(feed, text); err != nil {
				t.Fatal(err)
			}
		}
		put(tt.parts[0])
		put(tt.parts[1])
		expect(" event  type")
		expect("------")
		expect("  alloc  ")
		put(tt.parts[2])
		expect("  free  ")
		if tt.name == "mtrc" {
			put("MTRC")
		}
		feed.Close()
		for lines.Scan() {
		}
		if code := <-done; code != cli.OK {
			t.Errorf("%s: exit code %d", tt.name, code)
		}
	}
}

// An interrupted run leaves no files.
func TestMptraceInterrupted(t *testing.T) {
	dir := t.TempDir()
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan cli.ExitCode)
	var errOut bytes.Buffer
	go func() {
		s := cli.Streams{In: in, Out: io.Discard, Err: &errOut}
		done <- run(ctx, s, []string{"rtrace", "mptrace", "-H", filepath.Join(dir, "x.hatf"), "-S", filepath.Join(dir, "x.c")})
	}()
	if _, err := io.WriteString(feed, mtrcFile("H\x01\x02")[:23]); err != nil {
		t.Fatal(err)
	}
	cancel()
	if code := <-done; code != cli.Failed || errOut.String() != "rtrace mptrace: interrupted\n" {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The first wrong events are reported one by one, and all are counted, stream by stream.
func TestMptraceComplaints(t *testing.T) {
	bad := strings.Repeat("F\x09\x00\x00\x00\x00", 8) + "A\x01\x10\x08\x00\x00\x00\x00A\x01\x20\x08\x00\x00\x00\x00R\x02\x01\x01\x00\x00\x00\x00"
	_, errOut, code := runRtrace(mtrcFile(bad)+mtrcFile("F\x07\x00\x00\x00\x00")+"junk", "mptrace")
	want := ""
	for i := range 5 {
		want += fmt.Sprintf("rtrace mptrace: warning: event %d: no block with index 9 is allocated\n", i+1)
	}
	want += `rtrace mptrace: warning: frees and reallocs of blocks that are not allocated do not count: 9
rtrace mptrace: warning: blocks whose indices are allocated again count as freed: 1
rtrace mptrace: warning: event 1: no block with index 7 is allocated
rtrace mptrace: warning: frees and reallocs of blocks that are not allocated do not count: 1
rtrace mptrace: warning: bytes after the end of the trace are left out: 4
`
	if d := cmp.Diff(want, errOut); d != "" || code != cli.OK {
		t.Errorf("exit code %d (-want +got):\n%s", code, d)
	}
}

// Events after a stream that a forked process cut are printed, and the exit code shows the
// cut.
func TestMptraceCutStream(t *testing.T) {
	first := mtrcFile("A\x01\x10\x08\x00\x00\x00\x00")
	second := mtrcFile("A\x01\x10\x09\x00\x00\x00\x00", "A\x02\x10\x09\x00\x00\x00\x00")
	out, errOut, code := runRtrace(strings.TrimSuffix(first, "MTRC")+second, "mptrace")
	if strings.Count(out, "allocated: 1 (8 bytes)\n") != 1 || strings.Count(out, "allocated: 2 (18 bytes)\n") != 1 || !strings.Contains(out, "\n\nstream 2\n--------\n\nmemory") {
		t.Errorf("%s", out)
	}
	if code != cli.Incomplete || errOut != "rtrace mptrace: note: standard input: streams that have no end: 1\n" {
		t.Errorf("exit code %d, %q", code, errOut)
	}
	// A broken record ends the run, but everything before it is printed.
	out, errOut, code = runRtrace(first[:28]+"Xyz..", "mptrace", "-v")
	if !strings.Contains(out, "unfreed:   1 (8 bytes)\n") || code != cli.Failed || !strings.HasPrefix(errOut, "rtrace mptrace: reading standard input: mtrc: offset 28: ") {
		t.Errorf("exit code %d, %q\n%s", code, errOut, out)
	}
}

// Names with wrong ids are reported.
func TestMptraceUndefinedName(t *testing.T) {
	out, errOut, code := runRtrace(mtrcFile("A\x01\x10\x08\x05\x07\x00\x00"), "mptrace", "-vs")
	if !strings.Contains(out, "thread 5\n") || code != cli.OK || errOut != "rtrace mptrace: warning: names that were not defined are left out: 1\n" {
		t.Errorf("exit code %d, %q\n%s", code, errOut, out)
	}
}

// Where the real tool crashes or gives up, there is a warning.
func TestMptraceNames(t *testing.T) {
	long := "\x81" + strings.Repeat("n", 1024) + "\x00"
	out, errOut, code := runRtrace(mtrcFile("A\x01\x10\x08\x05\x80zero\x00\xa1high\x00\x07F\x01\x05"+long+"\xff\x1b[2J\x00\x07"), "mptrace", "-vs")
	want := "rtrace mptrace: warning: names with ids at which the real mptrace crashes: 3\n" +
		"rtrace mptrace: warning: names that are too long for the real mptrace: 1\n"
	if d := cmp.Diff(want, errOut); d != "" || code != cli.OK || !strings.Contains(out, " in zero at high line 7\n") {
		t.Errorf("exit code %d (-want +got):\n%s\n%s", code, d, out)
	}
	if !strings.Contains(out, `n at \x1b[2J line 7`) {
		t.Errorf("%q", out)
	}
	// The same in a trace that is cut.
	whole := mtrcFile("A\x01\x10\x08\x05\xa1high\x00\x00\x07")
	_, errOut, code = runRtrace(whole[:len(whole)-1], "mptrace")
	if code != cli.Incomplete || !strings.HasPrefix(errOut, "rtrace mptrace: warning: names with ids at which the real mptrace crashes: 1\nrtrace mptrace: note: ") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
}

// A trace without even a header is not a trace.
func TestMptraceCutHeader(t *testing.T) {
	whole := mtrcFile()
	for n := range 20 {
		out, errOut, code := runRtrace(whole[:n], "mptrace", "-v")
		if out != "" || code != cli.Failed || !strings.HasPrefix(errOut, "rtrace mptrace: reading standard input: ") {
			t.Errorf("%d bytes: exit code %d, %q, %q", n, code, errOut, out)
		}
	}
}

// Data after the end of a trace is another stream, as in convert.
func TestMptraceBehindEnd(t *testing.T) {
	text := `{"format":"rtrace-jsonl","version":1}
{"kind":"header","pointer_size":4}
{"kind":"call","op":"alloc","function":"malloc","id":"0x10","size":10}
{"kind":"end"}
{"kind":"lost","count":1}
{"kind":"call","op":"alloc","function":"pvalloc","id":"0x10","size":20}
{"kind":"end"}
{"kind":"process","pid":1}
{"kind":"call","op":"free","function":"free","id":"0x10"}
`
	got, _, code := runRtrace(text, "mptrace", "-v")
	if code != cli.OK {
		t.Errorf("exit code %d", code)
	}
	mtrc, _, _ := runRtrace(text, "convert", "-f", "mtrc")
	want, _, _ := runRtrace(mtrc, "mptrace", "-v")
	if d := cmp.Diff(want, got); d != "" || !strings.Contains(got, "stream 3") {
		t.Errorf("(-convert +direct):\n%s", d)
	}
}

// Two outputs cannot be the same file, also by the name of a later stream.
func TestMptraceOneFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.2.c")
	for _, args := range [][]string{
		{"-H", file, "-S", filepath.Join(dir, ".", "x.2.c")},
		{"-H", file, "-S", filepath.Join(dir, "x.c")},
	} {
		_, errOut, code := runRtrace(mtrcFile()+mtrcFile(), append([]string{"mptrace"}, args...)...)
		if code != cli.Usage || !strings.Contains(errOut, "x.2.c is two outputs") {
			t.Errorf("%q: exit code %d, %q", args, code, errOut)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	if _, errOut, code := runRtrace(mtrcFile(), "mptrace", "-H", os.DevNull, "-S", os.DevNull); code != cli.OK {
		t.Errorf("exit code %d, %q", code, errOut)
	}
}

// A trace of mpatrol in another format has the same table.
func TestMptraceOtherFormats(t *testing.T) {
	for _, name := range []string{"basic", "basic32", "demo", "ls", "manyfn", "fork"} {
		input := filepath.Join(mpatrolCorpus, "real", name+".trace")
		want, _, _ := runRtrace("", "mptrace", "-v", "-s", input)
		text, errOut, code := runRtrace("", "convert", "-f", "jsonl", input)
		if code != cli.OK {
			t.Fatalf("%s: %d, %s", name, code, errOut)
		}
		got, errOut, code := runRtrace(text, "mptrace", "-v", "-s")
		if d := cmp.Diff(want, got); d != "" || code != cli.OK || errOut != "" {
			t.Errorf("%s: exit code %d, %q (-want +got):\n%s", name, code, errOut, d)
		}
	}
}

// The clock of the day wraps at midnight, times in HATF do not; what the trace lacks is
// reported.
func TestMptraceRecords(t *testing.T) {
	text := `{"format":"rtrace-jsonl","version":1}
{"kind":"header","clock":"day","pointer_size":4}
{"kind":"resource","id":1,"type":"memory"}
{"kind":"resource","id":2,"type":"fd"}
{"kind":"call","time":86399000000000,"tid":1,"op":"alloc","function":"malloc","resource":1,"id":"0x10","size":10}
{"kind":"call","time":86399500000000,"op":"alloc","function":"open","resource":2,"id":"0x3","size":1}
{"kind":"lost","count":7,"reason":"ring full"}
{"kind":"call","time":500000000,"op":"alloc","function":"malloc","resource":1,"id":"0x10","size":3}
{"kind":"call","time":600000000,"op":"move","function":"realloc","resource":1,"id":"0x30","old_id":"0x20","size":7}
`
	out, errOut, code := runRtrace(text, "mptrace", "-v", "-H", "stderr", "--hatf=full")
	wantRecords := "9 1\n1 10 0x10 0 1\n2 0x10 1500000000\n1 3 0x10 1500000000\n1 7 0x30 1600000000\n"
	wantWarnings := `rtrace mptrace: warning: reallocs of blocks that are not allocated are shown as allocations: 1
rtrace mptrace: warning: blocks whose addresses are allocated again are shown as freed: 1
rtrace mptrace: warning: calls of other resources than memory are left out: 1
rtrace mptrace: warning: events were lost while recording: 7
`
	if !strings.Contains(errOut, wantRecords) || !strings.Contains(errOut, wantWarnings) || code != cli.OK {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
	if !strings.Contains(out, "     1  alloc        1  0x00000010        10               1        10\n") {
		t.Errorf("%s", out)
	}
}

// The simulation of a real trace compiles and makes its calls.
func TestMptraceSimulation(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "s.c"), filepath.Join(dir, "s")
	table, errOut, code := runRtrace("", "mptrace", "-v", "-S", source, filepath.Join(mpatrolCorpus, "real", "manyfn.trace"))
	if code != cli.OK || errOut != "" {
		t.Fatalf("exit code %d, %q", code, errOut)
	}
	if out, err := exec.Command("cc", "-Wall", "-Werror", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(program, "-c").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("malloc %d\nrealloc %d\nfree %d\n",
		strings.Count(table, "  alloc  "), strings.Count(table, "  realloc  "), strings.Count(table, "  free  "))
	if d := cmp.Diff(want, string(out)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Output that cannot be written is an error; a reader that went away is not.
func TestMptraceOutputErrors(t *testing.T) {
	in := mtrcFile(strings.Repeat("H\x01\x02", 10_000))
	for _, args := range [][]string{{"mptrace"}, {"mptrace", "-v"}, {"mptrace", "--legacy", "-v"}, {"mptrace", "-H", "-"}} {
		code, _, errOut := try(cli.Streams{In: strings.NewReader(in), Out: failing{io.ErrShortWrite}}, args...)
		if code != cli.Failed || !strings.Contains(errOut, io.ErrShortWrite.Error()) {
			t.Errorf("%v: exit code %d, %q", args, code, errOut)
		}
	}
	dir := t.TempDir()
	for _, args := range [][]string{{"mptrace", "-H", dir}, {"mptrace", "-S", dir}, {"mptrace", "--legacy", "-H", dir}} {
		code, _, errOut := try(cli.Streams{In: strings.NewReader(in)}, args...)
		if code != cli.Usage || !strings.Contains(errOut, "is a directory") {
			t.Errorf("%v: exit code %d, %q", args, code, errOut)
		}
	}
}
