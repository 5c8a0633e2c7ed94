package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

func TestPostprocOutput(t *testing.T) {
	dir := t.TempDir()
	want, _, _ := runRtrace("", "postproc", leaksFile)
	for n, name := range []string{"27147-0.rtrace.txt", "27147-1.rtrace.txt"} {
		out, errOut, code := runRtrace("", "postproc", "-o", dir, leaksFile)
		path := filepath.Join(dir, name)
		if out != "" || code != cli.OK || errOut != "rtrace postproc: writing "+path+"\n" {
			t.Errorf("run %d: exit code %d, stdout %q, stderr %q", n, code, out, errOut)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %v, as on standard output: %v", name, err, string(got) == want)
		}
	}
	path := filepath.Join(dir, "x.txt")
	if out, errOut, code := runRtrace("", "postproc", "-q", "-o", path, leaksFile); out != "" || errOut != "" || code != cli.OK {
		t.Errorf("file: exit code %d, stdout %q, stderr %q", code, out, errOut)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("x.txt: %v", err)
	}
	out, errOut, _ := runRtrace("", "postproc", "--legacy", "-o", dir, leaksFile)
	if want := "INFO: Created text log file " + filepath.Join(dir, "27147-2.rtrace.txt") + "\n"; out != want || errOut != "" {
		t.Errorf("legacy: stdout %q, stderr %q", out, errOut)
	}
	for _, o := range []string{"-", "stdout"} {
		if out, _, _ := runRtrace("", "postproc", "-o", o, leaksFile); out != want {
			t.Errorf("-o %s: not on standard output", o)
		}
	}
}

func TestPostprocCompressedInput(t *testing.T) {
	in, err := os.ReadFile(leaksFile)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(in); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trace.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	want, _, _ := runRtrace("", "postproc", leaksFile)
	if out, _, code := runRtrace("", "postproc", path); out != want || code != cli.OK {
		t.Errorf("file: exit code %d, the same: %v", code, out == want)
	}
	if out, _, code := runRtrace(b.String(), "postproc"); out != want || code != cli.OK {
		t.Errorf("pipe: exit code %d, the same: %v", code, out == want)
	}
}

// TestPostprocSideFile: the side file has sizes that the trace cannot represent.
func TestPostprocSideFile(t *testing.T) {
	dir := t.TempDir()
	in := jsonlTrace(t, &trace.Record{Kind: trace.KindCall, Time: 1e6, PID: 7, Call: trace.Call{
		Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 4, ID: 0x10, Size: 5 << 32,
	}})
	source := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(source, []byte(in), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "out.rtrace")
	if _, errOut, code := runRtrace("", "convert", "-f", "sprtrace", "-o", path, source); code != cli.OK {
		t.Fatalf("convert: exit code %d, stderr %q", code, errOut)
	}
	side, err := os.Open(path + ".side")
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	if !sidefile.Is(side) {
		t.Fatal("no side file")
	}
	for _, flags := range [][]string{{}, {"-l"}} {
		out, _, code := runRtrace("", append([]string{"postproc", path}, flags...)...)
		if !strings.Contains(out, "1. [00:00:00.001] malloc(21474836480) = 0x10\n") || code != cli.OK {
			t.Errorf("%v: exit code %d\n%s", flags, code, out)
		}
	}
	if out, _, _ := runRtrace("", "postproc", "--legacy", path); !strings.Contains(out, "malloc(2147483647) = 0x10\n") {
		t.Errorf("legacy:\n%s", out)
	}
}

// TestPostprocInterrupted: a context that is done ends the run, whatever it reads.
func TestPostprocInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var errOut bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errOut}
	if code := run(ctx, s, []string{"rtrace", "postproc", leaksFile}); code != cli.Failed || !strings.Contains(errOut.String(), "interrupted") {
		t.Errorf("exit code %d, stderr %q", code, errOut.String())
	}
}

func TestPostprocWriteError(t *testing.T) {
	for _, flags := range [][]string{{}, {"-l"}, {"--legacy"}} {
		var errOut bytes.Buffer
		s := cli.Streams{In: strings.NewReader(""), Out: fullDisk{}, Err: &errOut}
		if code := run(context.Background(), s, append([]string{"rtrace", "postproc", leaksFile}, flags...)); code != cli.Failed || !strings.Contains(errOut.String(), errFull.Error()) {
			t.Errorf("%v: exit code %d, stderr %q", flags, code, errOut.String())
		}
	}
}

// TestPostprocSpool: a stream is copied to a temporary file that is gone afterwards.
func TestPostprocSpool(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	in, err := os.ReadFile(leaksFile)
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ := runRtrace("", "postproc", leaksFile)
	for _, flags := range [][]string{{}, {"-"}, {"-i", "-"}} {
		out, _, code := runRtrace(string(in), append([]string{"postproc"}, flags...)...)
		if out != want || code != cli.OK {
			t.Errorf("%v: exit code %d, the same as of the file: %v", flags, code, out == want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left in %s: %v, %v", dir, left, err)
	}
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	_, errOut, code := runRtrace(string(in), "postproc")
	if code != cli.Failed || !strings.Contains(errOut, "temporary file") {
		t.Errorf("no room for the copy: exit code %d, stderr %q", code, errOut)
	}
	// -l needs none.
	if _, errOut, code := runRtrace(string(in), "postproc", "-l"); code != cli.OK {
		t.Errorf("-l: exit code %d, stderr %q", code, errOut)
	}
}

// TestPostprocChurn: the leaks of a long trace are those of the generator, with and without
// legacy.
func TestPostprocChurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "churn")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const mallocs = 20_000
	calls, err := writeChurn(f, mallocs)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	plain, _, _ := runRtrace("", "postproc", path)
	n := 0
	for line := range strings.Lines(plain) {
		if line[0] >= '0' && line[0] <= '9' {
			n++
		}
	}
	if n != calls {
		t.Errorf("%d calls printed of %d", n, calls)
	}
	for _, flags := range [][]string{{"-l"}, {"-l", "--legacy"}} {
		out, _, _ := runRtrace("", append([]string{"postproc", path}, flags...)...)
		if want := "# 400 block(s) leaked with total size of "; mallocs/50 != 400 || !strings.Contains(out, want) {
			t.Errorf("%v: no %q in the summary: %s", flags, want, out[max(0, len(out)-200):])
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
