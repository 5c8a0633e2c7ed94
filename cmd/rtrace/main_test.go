package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
)

// try runs the program with buffers for streams.
func try(s cli.Streams, args ...string) (code cli.ExitCode, out, errOut string) {
	var o, e bytes.Buffer
	if s.In == nil {
		s.In = strings.NewReader("")
	}
	if s.Out == nil {
		s.Out = &o
	}
	s.Err = &e
	code = run(context.Background(), s, append([]string{"rtrace"}, args...))
	return code, o.String(), e.String()
}

const small = `{"format":"rtrace-jsonl","version":1}
{"kind":"process","pid":7,"name":"prog"}
{"kind":"call","seq":1,"op":"alloc","function":"malloc","id":"0x10","size":8}
`

// Data that is not for people does not fill a terminal unless requested.
func TestTerminal(t *testing.T) {
	dir, terminal := t.TempDir(), cli.Streams{OutTerminal: true}
	file := filepath.Join(dir, "trace.jsonl")
	if err := os.WriteFile(file, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		s    cli.Streams
		args []string
		code cli.ExitCode
		err  string
	}{
		{"input from a terminal", cli.Streams{InTerminal: true}, []string{"info"}, cli.Usage, "standard input is a terminal"},
		{"said so", cli.Streams{InTerminal: true, In: strings.NewReader(small)}, []string{"info", "-"}, cli.Usage, "standard input is a terminal"},
		{"binary to a terminal", cli.Streams{OutTerminal: true}, []string{"convert", "-f", "sprtrace", file}, cli.Usage, "standard output is a terminal, and the output is binary\nhint: write it to a file: rtrace convert -o convert.rtrace -f sprtrace " + file},
		{"binary to a terminal, wanted", cli.Streams{OutTerminal: true}, []string{"convert", "-f", "sprtrace", "-o", "-", file}, cli.OK, ""},
		{"text to a terminal", cli.Streams{OutTerminal: true}, []string{"convert", "-f", "text", file}, cli.OK, ""},
		{"undump to a terminal", cli.Streams{OutTerminal: true}, []string{"undump", file}, cli.Usage, "hint: write it to a file: rtrace undump -o undump.trace " + file},
		{"page", terminal, []string{"report", file}, cli.Usage, "the output is a page for a browser\nhint: write it to a file: rtrace report -o report.html " + file},
		{"page, wanted", terminal, []string{"report", "-o", "-", file}, cli.OK, ""},
		{"page to a file", terminal, []string{"report", "-o", filepath.Join(dir, "page"), file}, cli.OK, ""},
		{"page in a directory", cli.Streams{}, []string{"report", "-o", dir, file}, cli.Usage, dir + " is a directory, but the output is a single file\nhint: name the file, such as " + dir + "/report.html"},
		{"page in a new directory", cli.Streams{}, []string{"report", "-o", "new/", file}, cli.Usage, "new/ is a directory, but the output is a single file\nhint: name the file, such as new/report.html"},
		{"text in a new directory", cli.Streams{}, []string{"dump", "-o", "new/", file}, cli.Usage, "hint: name the file, such as new/dump.txt"},
		{"new directory", cli.Streams{}, []string{"postproc", "-o", dir + "/made/", file}, cli.OK, "writing " + dir + "/made/7-0.rtrace.txt"},
		{"new directory of graphs", cli.Streams{}, []string{"graphs", "overview", "-o", dir + "/graphs/", file}, cli.OK, "warning"},
		{"page to a pipe", cli.Streams{}, []string{"report", file}, cli.OK, ""},
		{"map", terminal, []string{"heapmap", file}, cli.Usage, "rtrace heapmap -o heapmap.svg " + file},
		{"map as a page", terminal, []string{"heapmap", "-f", "html", file}, cli.Usage, "rtrace heapmap -o heapmap.html -f html " + file},
		{"table of times", terminal, []string{"timeline", file}, cli.OK, ""},
		{"picture of times", terminal, []string{"timeline", "-f", "svg", file}, cli.Usage, "rtrace timeline -o timeline.svg -f svg " + file},
		{"report of times", terminal, []string{"timeline", "-t", "-g", file}, cli.Usage, "rtrace timeline -o timeline.svg -t -g " + file},
		{"graph", terminal, []string{"calltree", file}, cli.Usage, "rtrace calltree -o calltree.dot " + file},
		{"text of heap", terminal, []string{"allocmap", file}, cli.OK, ""},
		{"profile", terminal, []string{"convert", "-f", "pprof", file}, cli.Usage, "rtrace convert -o convert.pb.gz -f pprof " + file},
		{"profile for a viewer", terminal, []string{"convert", "-f", "speedscope", file}, cli.Usage, "rtrace convert -o convert.speedscope.json -f speedscope " + file},
		{"profile as text", terminal, []string{"convert", "-f", "folded", file}, cli.OK, "warning: the trace has no frees"},
		{"name with a blank", terminal, []string{"report", "--lines=false", file + " 2"}, cli.Usage, "rtrace report -o report.html --lines=false '" + file + " 2'"},
	} {
		code, _, errOut := try(tt.s, tt.args...)
		if code != tt.code || !strings.Contains(errOut, tt.err) || tt.err == "" && errOut != "" {
			t.Errorf("%s: exit code %d, %q", tt.name, code, errOut)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// Output that cannot be written is an error with a message; a reader that went away is not
// an error.
func TestOutputErrors(t *testing.T) {
	full := errors.New("no space left on device")
	for _, args := range [][]string{{"info"}, {"info", "--json"}, {"dump"}, {"convert", "-f", "text"}, {"convert", "-f", "jsonl"}, {"--help"}, {"info", "--help"}, {"--version"}} {
		code, _, errOut := try(cli.Streams{In: strings.NewReader(small), Out: failing{full}}, args...)
		if code != cli.Failed || !strings.Contains(errOut, full.Error()) {
			t.Errorf("%v: exit code %d, %q", args, code, errOut)
		}
		code, _, errOut = try(cli.Streams{In: strings.NewReader(small), Out: failing{syscall.EPIPE}}, args...)
		if code != cli.BrokenPipe || errOut != "" {
			t.Errorf("%v to a closed pipe: exit code %d, %q", args, code, errOut)
		}
	}
}

// An interrupted command ends although its input waits, and leaves nothing.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	r, w := io.Pipe()
	defer w.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan cli.ExitCode)
	var errOut bytes.Buffer
	go func() {
		s := cli.Streams{In: r, Out: io.Discard, Err: &errOut}
		done <- run(ctx, s, []string{"rtrace", "convert", "-o", filepath.Join(dir, "out.jsonl")})
	}()
	if _, err := io.WriteString(w, small); err != nil {
		t.Fatal(err)
	}
	cancel()
	if code := <-done; code != cli.Failed || errOut.String() != "rtrace convert: interrupted\n" {
		t.Errorf("exit code %d, %q", code, errOut.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ended   bool // the input was not a pipe, or has ended
		signals []os.Signal
		left    int // signals that were not needed
	}{
		{"the first interrupt while reading a pipe is ignored", false, []os.Signal{os.Interrupt, os.Interrupt}, 0},
		{"otherwise it counts", true, []os.Signal{os.Interrupt, os.Interrupt}, 1},
		{"others always count", false, []os.Signal{syscall.SIGTERM, os.Interrupt}, 1},
	} {
		signals := make(chan os.Signal, len(tt.signals))
		for _, s := range tt.signals {
			signals <- s
		}
		in := &pipeReader{r: strings.NewReader("")}
		in.ended.Store(tt.ended)
		ended := false
		await(signals, in, func() { ended = true })
		if !ended || len(signals) != tt.left {
			t.Errorf("%s: ended %v, %d signals left", tt.name, ended, len(signals))
		}
	}
	in := &pipeReader{r: strings.NewReader("x")}
	if _, err := io.ReadAll(in); err != nil || !in.ended.Load() {
		t.Errorf("the end of the input is not noticed: %v", err)
	}
}

func TestInvokedAs(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
		rest int
	}{
		{nil, "", 0},
		{[]string{"/usr/bin/rtrace", "x"}, "", 1},
		{[]string{"rtrace-info", "x"}, "info", 1},
		{[]string{"./sp-rtrace-dump"}, "dump", 0},
		{[]string{"rtrace-convert.exe", "x", "y"}, "convert", 2},
		{[]string{"/usr/local/bin/mptrace", "x"}, "mptrace", 2},
		{[]string{"rtrace-mptrace", "x"}, "mptrace", 1},
		{[]string{"rtrace-bpf", "x"}, "", 1},
		{[]string{"sp-rtrace", "x"}, "", 1},
	} {
		got, rest := invokedAs(tt.args)
		if got != tt.want || len(rest) != tt.rest {
			t.Errorf("%q: %q with %q", tt.args, got, rest)
		}
	}
}

func TestPump(t *testing.T) {
	text := strings.Repeat("0123456789", 50_000)
	got, err := io.ReadAll(untilDone(context.Background(), strings.NewReader(text)))
	if err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	broken := errors.New("broken")
	r := untilDone(context.Background(), io.MultiReader(strings.NewReader("abc"), brokenReader{broken}))
	if got, err := io.ReadAll(r); !errors.Is(err, broken) || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

// The figures of a trace whose clock wraps at midnight, with reference counts and an exec.
func TestSurvey(t *testing.T) {
	text := `{"format":"rtrace-jsonl","version":1}
{"kind":"header","clock":"day"}
{"kind":"resource","id":1,"type":"memory"}
{"kind":"resource","id":2,"type":"fd","refcount":true}
{"kind":"resource","id":100,"type":"far"}
{"kind":"call","time":86399000000000,"op":"alloc","function":"malloc","resource":1,"id":"0x10","size":10}
{"kind":"exec","name":"sh"}
{"kind":"call","time":1000000000,"op":"alloc","function":"dup","resource":2,"id":"0x3","size":1}
{"kind":"call","time":1000000000,"op":"alloc","function":"dup","resource":2,"id":"0x3","size":1}
{"kind":"call","time":1000000000,"op":"free","function":"close","resource":2,"id":"0x3"}
{"kind":"call","time":1000000000,"op":"alloc","function":"f","resource":100,"id":"0x3","size":5}
{"kind":"call","time":1000000000,"op":"free","function":"free","resource":1,"id":"0x10"}
{"kind":"call","time":2000000000,"op":"move","function":"realloc","resource":1,"id":"0x20","old_id":"0x30","size":7}
{"kind":"call","time":2000000000,"op":"move","function":"realloc","resource":1,"id":"0x20","old_id":"0x20","size":9}
`
	code, out, errOut := try(cli.Streams{In: strings.NewReader(text)}, "info")
	if code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, %q", code, errOut)
	}
	for _, want := range []string{
		"time:       23:59:59.000 to 00:00:02.000, 3.000 s\n",
		"live:                  1 memory, 9 bytes; at the peak 1, 10 bytes\n",
		"                       1 fd, 1 bytes; at the peak 1, 1 bytes\n",
		"                       1 far, 5 bytes; at the peak 1, 5 bytes\n",
		"unmatched:  2 frees",
		"lost:       0\n", "stacks:     none\n",
		"                       2 realloc move memory, 16 bytes\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
