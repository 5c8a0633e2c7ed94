package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// callerProgram compiles a program with debugging information. It returns the program, the
// address of its code, and a return address in its third line.
func callerProgram(t *testing.T) (path string, code elf.ProgHeader, inside uint64) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "work.c")
	if err := os.WriteFile(source, []byte("int main(void);\n\nint work(int x) { return x; }\nint main(void) { return work(3); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "work")
	if out, err := exec.Command("gcc", "-g", "-no-pie", "-o", path, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == "work" {
			inside = s.Value + 2
		}
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			code = p.ProgHeader
		}
	}
	return path, code, inside
}

// callersIn returns the callers of all calls of a trace.
func callersIn(t *testing.T, text string) (all []trace.Caller) {
	t.Helper()
	in, err := decoder.Open(strings.NewReader(text), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	records, err := trace.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Kind == trace.KindCall {
			all = append(all, r.Call.Caller)
		}
	}
	return all
}

func TestConvertCallers(t *testing.T) {
	path, code, inside := callerProgram(t)
	call := func(seq uint64, frames []uint64, names ...string) *trace.Record {
		return &trace.Record{Kind: trace.KindCall, Time: int64(seq), PID: 7, TID: 7, Call: trace.Call{
			Seq: seq, Op: trace.OpAlloc, Function: "malloc", Resource: 4, ID: 16 * seq, Size: 5,
			Stack: trace.Stack{Frames: frames, Names: names, End: trace.StackComplete},
		}}
	}
	in := jsonlTrace(t,
		&trace.Record{Kind: trace.KindMapping, PID: 7, Mapping: trace.Mapping{Start: code.Vaddr, End: code.Vaddr + code.Memsz, Offset: code.Off, Base: code.Vaddr, Path: path}},
		call(1, []uint64{inside}),
		call(2, []uint64{0x10}, "strdup() from /lib/libc.so.6"),
		call(3, []uint64{0x20, inside}, "malloc() from /lib/libc.so.6", ""),
		call(4, []uint64{0x30}, "other() at other.c:12"),
		call(5, nil),
		&trace.Record{Kind: trace.KindEnd},
	)
	work := trace.Caller{Function: "work", File: filepath.Join(filepath.Dir(path), "work.c"), Line: 3}
	other := trace.Caller{Function: "other", File: "other.c", Line: 12}
	program := []trace.Caller{work, {Function: "strdup"}, work, other, {}}
	innermost := []trace.Caller{work, {Function: "strdup"}, {Function: "malloc"}, other, {}}
	for _, tt := range []struct {
		args []string
		want []trace.Caller
	}{
		{[]string{"-f", "jsonl"}, make([]trace.Caller, 5)},
		{[]string{"-f", "jsonl", "--callers"}, program},
		{[]string{"-f", "jsonl", "--callers=innermost"}, innermost},
		{[]string{"-f", "mtrc", "--callers=program"}, program},
	} {
		out, errOut, code := runRtrace(in, append([]string{"convert"}, tt.args...)...)
		if code != cli.OK || errOut != "" {
			t.Fatalf("%q: exit code %d, stderr %q", tt.args, code, errOut)
		}
		got := callersIn(t, out)
		if len(got) != len(tt.want) {
			t.Fatalf("%q: %d calls, want %d", tt.args, len(got), len(tt.want))
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%q: call %d: got %+v, want %+v", tt.args, i+1, got[i], tt.want[i])
			}
		}
	}
}

// TestConvertCallersLate: sp-rtrace writes mappings late, so a file is first read for its
// mappings.
func TestConvertCallersLate(t *testing.T) {
	path, code, inside := callerProgram(t)
	in := jsonlTrace(t,
		&trace.Record{Kind: trace.KindCall, PID: 7, Call: trace.Call{
			Seq: 1, Op: trace.OpAlloc, Function: "malloc", Resource: 4, ID: 16, Size: 5,
			Stack: trace.Stack{Frames: []uint64{inside}, End: trace.StackComplete},
		}},
		&trace.Record{Kind: trace.KindMapping, PID: 7, Mapping: trace.Mapping{Start: code.Vaddr, End: code.Vaddr + code.Memsz, Offset: code.Off, Base: code.Vaddr, Path: path}},
		&trace.Record{Kind: trace.KindEnd},
	)
	for _, format := range []string{"sprtrace", "text"} {
		file := filepath.Join(t.TempDir(), "late")
		if _, errOut, code := runRtrace(in, "convert", "-f", format, "-o", file); code != cli.OK {
			t.Fatalf("exit code %d, stderr %q", code, errOut)
		}
		for _, extra := range []string{"--strict", "--no-side"} {
			out, errOut, code := runRtrace("", "convert", "-f", "jsonl", "--callers", extra, file)
			if code != cli.OK || errOut != "" {
				t.Fatalf("exit code %d, stderr %q", code, errOut)
			}
			if got := callersIn(t, out); len(got) != 1 || got[0].Function != "work" || got[0].Line != 3 {
				t.Errorf("%s %s: got %+v", format, extra, got)
			}
		}
	}
}

func TestConvertCallersUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-f", "jsonl", "--callers=all"},
		{"-f", "jsonl", "--callers=Program"},
		{"-f", "text", "--callers"},
		{"-f", "sprtrace", "--callers=innermost"},
	} {
		out, errOut, code := runRtrace("", append([]string{"convert"}, args...)...)
		if code != cli.Usage || out != "" || !strings.Contains(errOut, "callers") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, out, errOut)
		}
	}
}
