package resolve

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// logged is an allocation of testdata/callers.cc: the place that the program prints, and
// the stack.
type logged struct {
	function string
	line     uint64
	frames   []uint64
}

// logCalls builds the program in dir and runs it.
func logCalls(t *testing.T, compiler string, flags ...string) (prog string, calls []logged, maps []trace.Record) {
	t.Helper()
	source, err := filepath.Abs("testdata/callers.cc")
	if err != nil {
		t.Fatal(err)
	}
	prog = filepath.Join(t.TempDir(), "callers")
	run(t, append([]string{compiler, "-o", prog, source}, flags...)...)
	text, list, ok := strings.Cut(run(t, prog), "\n-\n")
	if !ok {
		t.Fatal("no mappings")
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] != "call" {
			continue
		}
		var numbers []uint64
		for _, word := range words[2:] {
			n, err := strconv.ParseUint(word, 0, 64)
			if err != nil {
				t.Fatal(line, err)
			}
			numbers = append(numbers, n)
		}
		calls = append(calls, logged{words[1], numbers[0], numbers[1:]})
	}
	parsed, err := proc.ParseMaps(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range parsed {
		if m.Perms&proc.Exec != 0 && m.File() {
			maps = append(maps, *mapped(m.Start, m.End, m.Offset, m.Start-m.Offset, m.Path))
		}
	}
	if len(calls) != 13 || len(maps) < 4 {
		t.Fatalf("%d calls, %d mappings", len(calls), len(maps))
	}
	return prog, calls, maps
}

// callersOf resolves the callers of calls.
func callersOf(t *testing.T, calls []logged, maps []trace.Record, p Policy) []trace.Caller {
	t.Helper()
	src := records(maps)
	for i := range calls {
		src = append(src, trace.Record{Kind: trace.KindCall, PID: 1, Call: trace.Call{Stack: trace.Stack{Frames: calls[i].frames}}})
	}
	all, err := trace.Load(NewCallers(&src, New(Options{}), p.Wrappers()))
	if err != nil {
		t.Fatal(err)
	}
	var found []trace.Caller
	for _, rec := range all[len(maps):] {
		found = append(found, rec.Call.Caller)
	}
	return found
}

// TestCallersLive compares callers with what a program prints about its own calls.
func TestCallersLive(t *testing.T) {
	source, err := filepath.Abs("testdata/callers.cc")
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{
		{"g++", "-O0", "-g"},
		{"g++", "-O2", "-g"},
		{"g++", "-O2", "-gdwarf-4", "-no-pie"},
		{"clang++", "-O0", "-g"},
		{"clang++", "-O2", "-g", "-gz"},
		{"g++", "-m32", "-O0", "-g"},
		{"g++", "-m32", "-O2", "-g", "-no-pie"},
	} {
		if runtime.GOARCH != "amd64" && flags[1] == "-m32" {
			continue // a compiler for amd64
		}
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			if flags[1] == "-m32" {
				testutil.Need32Bit(t)
			}
			_, calls, maps := logCalls(t, flags[0], flags[1:]...)
			for i, got := range callersOf(t, calls, maps, Program) {
				want := trace.Caller{Function: calls[i].function, File: source, Line: calls[i].line}
				if sameFunction(got.Function, want.Function) {
					got.Function = want.Function
				}
				if got != want {
					t.Errorf("call %d: got %+v, want %+v", i, got, want)
				}
			}
		})
	}
}

// sameFunction reports whether want is a possible name of a function without a symbol
// because it is inlined, or of a lambda, whose number the compiler chooses.
func sameFunction(got, want string) bool {
	switch want {
	case "_ZL7inlinedv":
		return got == "inlined"
	case "_ZZ4mainENKUlvE_clEv":
		return got == "operator()" || strings.HasPrefix(got, "_ZZ4mainENK")
	}
	return false
}

// TestCallersInnermost checks that Innermost selects the frame that the call returns to,
// whatever it is.
func TestCallersInnermost(t *testing.T) {
	prog, calls, maps := logCalls(t, "g++", "-O0", "-g")
	for i, got := range callersOf(t, calls, maps, Innermost) {
		at := offsetIn(maps, prog, calls[i].frames[0])
		switch {
		case at != 0:
			text := run(t, "llvm-symbolizer", "--no-demangle", "--output-style=GNU", "-f", "-e", prog, "0x"+strconv.FormatUint(at-1, 16))
			if want, _, _ := strings.Cut(text, "\n"); got.Function != want {
				t.Errorf("call %d: got %+v, want %s", i, got, want)
			}
		case calls[i].function == "in_c":
			if got.Function != "strdup" {
				t.Errorf("call %d: got %+v, want strdup", i, got)
			}
		case got.Function == calls[i].function:
			t.Errorf("call %d: got %+v, want a function of a library", i, got)
		}
	}
}

// offsetIn returns the address in a position-independent program, or 0.
func offsetIn(maps []trace.Record, prog string, addr uint64) uint64 {
	for i := range maps {
		if m := &maps[i].Mapping; m.Path == prog && addr >= m.Start && addr < m.End {
			return addr - m.Base
		}
	}
	return 0
}

// TestCallersWithoutLines checks that symbols are used where there is no debugging
// information. Where there is no symbol either, the function is empty and not that of the
// outer frame.
func TestCallersWithoutLines(t *testing.T) {
	for _, stripped := range []bool{false, true} {
		flags := []string{"-O1", "-rdynamic", "-fno-inline"}
		if stripped {
			flags = append(flags, "-s")
		}
		_, calls, maps := logCalls(t, "g++", flags...)
		for i, got := range callersOf(t, calls, maps, Program) {
			want := trace.Caller{Function: calls[i].function}
			if want.Function == "_ZL7inlinedv" {
				want.Function = "main" // without lines it is not known to be inlined
			}
			local := strings.HasPrefix(want.Function, "_ZL") || strings.HasPrefix(want.Function, "_ZZ")
			if stripped && local { // -rdynamic makes main global
				want.Function = ""
			}
			if got != want {
				t.Errorf("stripped %v, call %d of %s: got %+v, want %+v", stripped, i, calls[i].function, got, want)
			}
		}
	}
}

// TestCallersBounded checks that the memory for debugging information of all files together
// is limited.
func TestCallersBounded(t *testing.T) {
	const processes = 3
	var all [processes][]logged
	var src records
	for i := range all {
		var maps []trace.Record
		_, all[i], maps = logCalls(t, "g++", "-O0", "-g")
		for k := range maps {
			maps[k].PID = int32(i + 1)
		}
		src = append(src, maps...)
	}
	// count returns how many calls have lines, how many files have debugging information,
	// and how many of their units are in memory.
	count := func(r *Resolver) (named, files, loaded int) {
		for i := range src {
			r.Observe(&src[i])
		}
		c := NewCallers(nil, r, Program.Wrappers())
		for range 2 {
			for i := range all {
				for k := range all[i] {
					if c.Caller(int32(i+1), &trace.Stack{Frames: all[i][k].frames}).Line != 0 {
						named++
					}
				}
			}
			clear(c.sites)
			clear(c.slots)
		}
		for _, m := range r.modules.all {
			if m.debug.lines != nil {
				files++
				if m.debug.lines.Loaded() > 0 {
					loaded++
				}
			}
		}
		return named, files, loaded
	}
	calls := 2 * len(all[0])
	if named, files, loaded := count(New(Options{})); named != processes*calls || files < processes || loaded < processes {
		t.Errorf("%d lines, %d files, %d loaded", named, files, loaded)
	}
	r := New(Options{})
	r.maxLoaded = 0
	if named, files, loaded := count(r); named != processes*calls || files < processes || loaded != 1 || r.loaded == 0 {
		t.Errorf("one at a time: %d lines, %d files, %d loaded", named, files, loaded)
	}
	r = New(Options{MaxDebug: 1})
	if named, files, _ := count(r); named != 0 || files != 0 {
		t.Errorf("hardly any bytes: %d lines of %d files", named, files)
	}
	// The symbols of all files but the first exceed the limit.
	r = New(Options{MaxSymbols: 1})
	count(r)
	held := 0
	for _, m := range r.modules.all {
		if m.file != nil {
			held++
		}
	}
	if held != 1 || r.symbols <= 1 {
		t.Errorf("symbols of %d files, %d bytes; want those of one", held, r.symbols)
	}
	// There is room for the first file alone.
	first := debugOf(src, all[0])
	r = New(Options{MaxDebug: first + 1})
	if named, files, _ := count(r); named != calls || files != 1 {
		t.Errorf("room for a file: %d lines of %d files, want %d of 1", named, files, calls)
	}
}

// debugOf returns how many bytes the debugging information of the first program occupies.
func debugOf(src records, calls []logged) uint64 {
	r := New(Options{})
	for i := range src {
		r.Observe(&src[i])
	}
	c := NewCallers(nil, r, Program.Wrappers())
	for i := range calls {
		c.Caller(1, &trace.Stack{Frames: calls[i].frames})
	}
	return r.debug
}
