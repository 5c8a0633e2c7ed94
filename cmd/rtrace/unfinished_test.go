package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// Every subcommand that reads a trace has exit status 3 and one line for a trace whose
// tracer was killed, or that was cut between two records, and neither for a whole one.
func TestUnfinishedTraces(t *testing.T) {
	records := []*trace.Record{
		{Kind: trace.KindHeader, PID: 7, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, Origin: "rtrace-bpf 1", Ends: true}},
		{Kind: trace.KindProcess, PID: 7, Process: trace.Process{Name: "prog", WallTime: 1_700_000_000_000_000_000, Depth: 4}},
		{Kind: trace.KindResource, PID: 7, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}},
		{Kind: trace.KindCall, Time: 1e9, PID: 7, TID: 7, Call: trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: 0x1000, Size: 64,
			Stack: trace.Stack{Frames: []uint64{0x40}, Names: []string{"main() from /p"}, End: trace.StackComplete},
		}},
		{Kind: trace.KindEnd, Time: 2e9, PID: 7},
	}
	dir := t.TempDir()
	for _, format := range []string{"sprtrace", "text", "jsonl", "swap"} {
		var files [2]string // whole, and without its end
		for i := range files {
			var out bytes.Buffer
			w, err := encoder.New(format, &out, encoder.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records[:len(records)-i] {
				if err := w.WriteRecord(r); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			files[i] = filepath.Join(dir, format+[]string{"", "-cut"}[i])
			if err := os.WriteFile(files[i], out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range []string{
			"info", "info --json", "report", "leaks", "leaks --json", "top", "timeline -o OUT", "heapmap -o OUT", "calltree", "graphs overview -o OUT",
			"postproc", "postproc -l", "postproc -c", "postproc -l -c", "postproc --format sprtrace", "resolve", "resolve -f jsonl",
			"convert -f text", "convert -f jsonl", "convert -f sprtrace", "convert -f mtrc", "convert -f folded", "stacks", "dump", "dump --records",
			"allocmap", "from-function main", "alloc-sizes", "sort", "mprof", "mptrace", "swap-heap", "swap-libraries", "swap-persistent", "swap-maps", "swap-calls",
		} {
			for i, file := range files {
				full := strings.Fields(strings.ReplaceAll(args, "OUT", filepath.Join(t.TempDir(), "out.svg")))
				if full[0] == "sort" || full[0] == "from-function" || full[0] == "graphs" {
					full = append(full[:1:1], append(full[1:], file)...)
				} else {
					full = append(full, file)
				}
				code, _, errOut := try(cli.Streams{}, full...)
				want, lines := cli.OK, 0
				if i == 1 {
					want, lines = cli.Incomplete, 1
				}
				if code != want || strings.Count(errOut, "is incomplete: ") != lines {
					t.Errorf("%s of %s: exit code %d, want %d; %s", args, filepath.Base(file), code, want, errOut)
				}
			}
		}
	}
}

// The text of a whole trace marks its end, before the leak summary; the text of a cut trace
// does not, so that its next reader knows.
func TestPostprocKeepsTheEnd(t *testing.T) {
	const announced = "version=2.0, pid=7, \n## ends with: ## end\n<1> : memory (memory)\n1. malloc(5) = 0x10\n\n"
	const summary = "# Resource - memory (memory):\n# 1 block(s) leaked with total size of 5 bytes\n"
	for _, tt := range []struct {
		args []string
		tail string
	}{
		{[]string{"postproc"}, "\n\n## end\n"},
		{[]string{"postproc", "-c"}, "\n## end\n"},
		{[]string{"postproc", "-l"}, "\n\n## end\n" + summary},
		{[]string{"postproc", "-l", "-c"}, "\n## end\n" + summary},
	} {
		code, out, errOut := try(cli.Streams{In: strings.NewReader(announced + "## end\n")}, tt.args...)
		if code != cli.OK || !strings.HasSuffix(out, tt.tail) || strings.Count(out, "## end\n") != 2 {
			t.Errorf("%q: exit code %d, %s\n%s", tt.args, code, errOut, out)
		}
		if code, _, errOut = try(cli.Streams{In: strings.NewReader(out)}, "info"); code != cli.OK {
			t.Errorf("%q, read again: exit code %d, %s", tt.args, code, errOut)
		}
		code, out, errOut = try(cli.Streams{In: strings.NewReader(announced)}, tt.args...)
		if code != cli.Incomplete || strings.Count(out, "## end\n") != 1 {
			t.Errorf("%q of a cut text: exit code %d, %s\n%s", tt.args, code, errOut, out)
		}
	}
}
