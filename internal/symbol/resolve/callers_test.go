package resolve

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/wrapper"
	"rtrace-bpf/trace"
)

func TestParseText(t *testing.T) {
	caller := func(function, file string, line uint64) trace.Caller {
		return trace.Caller{Function: function, File: file, Line: line}
	}
	for _, tt := range []struct {
		text    string
		want    parsedText
		wrapper bool
	}{
		{"main() at demo.c:12", parsedText{caller("main", "demo.c", 12), ""}, false},
		{"main() from /bin/x", parsedText{caller("main", "", 0), "/bin/x"}, false},
		{"malloc() from /bin/x", parsedText{caller("malloc", "", 0), "/bin/x"}, true},
		{"strdup() from /lib/libc.so.6", parsedText{caller("strdup", "", 0), "/lib/libc.so.6"}, true},
		{"from /lib/libc.so.6", parsedText{trace.Caller{}, "/lib/libc.so.6"}, true},
		{"from /bin/x", parsedText{trace.Caller{}, "/bin/x"}, false},
		{"in ??", parsedText{}, false},
		{"", parsedText{}, false},
		{"plain", parsedText{caller("plain", "", 0), ""}, false},
		{"A::b(int) from /bin/x", parsedText{caller("A::b(int)", "", 0), "/bin/x"}, false},
		{"A::b(std::vector<int>) at a b.cc:3", parsedText{caller("A::b(std::vector<int>)", "a b.cc", 3), ""}, false},
		{"std::vector<int>::push_back(int const&) at v.h:3", parsedText{caller("std::vector<int>::push_back(int const&)", "v.h", 3), ""}, true},
		{"int* std::copy<int*>(int*, int*) from /bin/x", parsedText{caller("int* std::copy<int*>(int*, int*)", "", 0), "/bin/x"}, true},
		{"std::string f<int>(int) from /bin/x", parsedText{caller("std::string f<int>(int)", "", 0), "/bin/x"}, false},
		{"operator new(unsigned long) from /bin/x", parsedText{caller("operator new(unsigned long)", "", 0), "/bin/x"}, true},
		{"main() at nowhere", parsedText{caller("main() at nowhere", "", 0), ""}, false},
	} {
		got := parseText(tt.text)
		if got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.text, got, tt.want)
		}
		if w := isWrapper(&got); w != tt.wrapper {
			t.Errorf("%q: wrapper %v", tt.text, w)
		}
	}
}

// isWrapper reports whether a text belongs to no caller.
func isWrapper(p *parsedText) bool {
	return new(wrapper.List).Has(&wrapper.Frame{Function: p.caller.Function, File: p.caller.File, Module: p.module})
}

func FuzzParseText(f *testing.F) {
	for _, text := range []string{"main() at demo.c:12", "f() from /lib/libc.so.6", "from /x", "in ??", "int* std::copy<int*>(int*, int*) at v.h:3", "operator new("} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := parseText(text)
		isWrapper(&p)
		if n := len(p.caller.Function) + len(p.caller.File) + len(p.module); n > len(text) {
			t.Errorf("%d bytes from %d", n, len(text))
		}
		if p.caller.Line != 0 && p.caller.File == "" {
			t.Errorf("line %d of no file", p.caller.Line)
		}
	})
}

// callerFiles are a program, the C library and a library of the program.
func callerFiles() map[string][]byte {
	code := [][3]uint64{{0x1000, 0x1000, 0x1000}}
	return map[string][]byte{
		"/prog": image(elf.ET_DYN, "prog", 0, code, map[string]uint64{
			"main": 0x1000, "_Znwm": 0x1020, "_ZNSt6vectorIiSaIiEE9push_backERKi": 0x1040, "strdup": 0x1060, "work": 0x1080,
		}),
		"/lib/libc.so.6":      image(elf.ET_DYN, "libc", 0, code, map[string]uint64{"strdup": 0x1000, "malloc": 0x1020}),
		"/lib/libstdc++.so.6": image(elf.ET_DYN, "cxx.", 0, code, map[string]uint64{"_Znwm": 0x1000}),
	}
}

// Places in callerFiles, as they are mapped by callerMaps.
const (
	inMain    = 0x11001
	inNew     = 0x11021
	inVector  = 0x11041
	inStrdup  = 0x11061 // the program's own copy
	inWork    = 0x11081
	inNothing = 0x110c1
	libStrdup = 0x21001
	libMalloc = 0x21021
	libNone   = 0x21091
	cxxNew    = 0x31001
	jit       = 0x91001
	goneFile  = 0x41001
)

func callerMaps() []*trace.Record {
	return []*trace.Record{
		mapped(0x11000, 0x12000, 0x1000, 0x10000, "/prog"),
		mapped(0x21000, 0x22000, 0x1000, 0x20000, "/lib/libc.so.6"),
		mapped(0x31000, 0x32000, 0x1000, 0x30000, "/lib/libstdc++.so.6"),
		mapped(0x41000, 0x42000, 0x1000, 0x40000, "/gone"),
	}
}

func TestCallers(t *testing.T) {
	name := func(f string) trace.Caller { return trace.Caller{Function: f} }
	for _, tt := range []struct {
		name               string
		frames             []uint64
		names              []string
		program, innermost trace.Caller
	}{
		{"no stack", nil, nil, trace.Caller{}, trace.Caller{}},
		{"the program", []uint64{inWork, inMain}, nil, name("work"), name("work")},
		{"strdup of the C library", []uint64{libStrdup, inWork, inMain}, nil, name("work"), name("strdup")},
		{"new of a library", []uint64{cxxNew, inVector, inWork}, nil, name("work"), name("_Znwm")},
		{"new and strdup linked in", []uint64{inNew, inStrdup, inMain}, nil, name("main"), name("_Znwm")},
		{"only libraries", []uint64{libMalloc, libStrdup, libNone}, nil, name("strdup"), name("malloc")},
		{"only allocators", []uint64{libMalloc, cxxNew}, nil, trace.Caller{}, name("malloc")},
		{"stripped", []uint64{inNothing, inMain}, nil, trace.Caller{}, trace.Caller{}},
		{"stripped, called from a library", []uint64{libNone, inNothing, inMain}, nil, trace.Caller{}, trace.Caller{}},
		{"generated code", []uint64{jit, inMain}, nil, trace.Caller{}, trace.Caller{}},
		{"no file", []uint64{goneFile, inMain}, nil, trace.Caller{}, trace.Caller{}},
		{"no file, text", []uint64{goneFile, inMain}, []string{"f() at f.c:3", "x()"}, trace.Caller{Function: "f", File: "f.c", Line: 3}, trace.Caller{Function: "f", File: "f.c", Line: 3}},
		{"no mapping, text of a library", []uint64{jit, inMain}, []string{"g() from /lib/libc.so.6", ""}, name("main"), name("g")},
		{"file and text", []uint64{inWork}, []string{"g() at g.c:1"}, name("work"), name("work")},
		{"inlined functions", []uint64{jit}, []string{"std::f() at v.h:1 (inlined by) operator new(unsigned long) at n.h:2 (inlined by) work(int) at w.c:3 (inlined by) main() at w.c:9"}, trace.Caller{Function: "work(int)", File: "w.c", Line: 3}, trace.Caller{Function: "std::f()", File: "v.h", Line: 1}},
		{"short of texts", []uint64{jit, jit}, []string{"std::x()"}, trace.Caller{}, name("std::x()")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for policy, want := range map[Policy]trace.Caller{Program: tt.program, Innermost: tt.innermost} {
				r := New(opener(callerFiles()))
				for _, m := range callerMaps() {
					r.Observe(m)
				}
				c := NewCallers(nil, r, policy.Wrappers())
				for range 2 { // the second answer is a cached one
					if got := c.Caller(0, &trace.Stack{Frames: tt.frames, Names: tt.names}); got != want {
						t.Errorf("%v: got %+v, want %+v", policy, got, want)
					}
				}
			}
		})
	}
}

// TestCallersReader checks that callers that are already set stay, that mappings are
// followed, and that other records pass unchanged.
func TestCallersReader(t *testing.T) {
	call := func(caller trace.Caller, frames ...uint64) trace.Record {
		return trace.Record{Kind: trace.KindCall, PID: 5, Call: trace.Call{Caller: caller, Stack: trace.Stack{Frames: frames}}}
	}
	given := trace.Caller{Line: 7}
	src := records{
		call(trace.Caller{}, inWork),
		*callerMaps()[0],
		call(trace.Caller{}, inWork, inMain),
		call(given, inWork, inMain),
		call(trace.Caller{}),
		*unmapped(0x11000, 0x12000),
		*mapped(0x11000, 0x12000, 0x1000, 0x10000, "/lib/libc.so.6"),
		call(trace.Caller{}, libMalloc-0x10000),
		{Kind: trace.KindEnd},
	}
	got, err := trace.Load(NewCallers(&src, New(opener(callerFiles())), Program.Wrappers()))
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.Caller{{}, {}, {Function: "work"}, given, {}, {}, {}, {}, {}}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(want[i], got[i].Call.Caller); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestCallersOfTexts needs no files.
func TestCallersOfTexts(t *testing.T) {
	c := NewCallers(nil, nil, Program.Wrappers())
	stack := &trace.Stack{
		Frames: []uint64{1, 2, 3},
		Names:  []string{"operator new(unsigned long) from /lib/libstdc++.so.6", "f() at f.c:3", "main() at f.c:9"},
	}
	if got, want := c.Caller(1, stack), (trace.Caller{Function: "f", File: "f.c", Line: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := c.Caller(1, &trace.Stack{Frames: []uint64{1, 2}}); got != (trace.Caller{}) {
		t.Errorf("without texts: %+v", got)
	}
	if got, want := c.Caller(1, &trace.Stack{Frames: []uint64{1, 2}, Names: []string{"malloc() from /lib/libc.so.6", "from /lib/libc.so.6"}}), (trace.Caller{}); got != want {
		t.Errorf("nothing but libraries: %+v", got)
	}
}

// TestCallersForget checks that sites that were dropped for lack of room are found again.
func TestCallersForget(t *testing.T) {
	r := New(opener(callerFiles()))
	for _, m := range callerMaps() {
		r.Observe(m)
	}
	c := NewCallers(nil, r, Program.Wrappers())
	stack := &trace.Stack{Frames: []uint64{libStrdup, inWork}}
	for _, text := range []string{"x()", "y()", "z()"} {
		if got := c.Caller(0, stack); got.Function != "work" {
			t.Fatalf("got %+v", got)
		}
		c.bytes = maxSites
		c.text(text)
		if len(c.sites) != 0 || len(c.texts) != 1 || c.bytes > 1<<10 {
			t.Fatalf("%d sites, %d texts, %d bytes", len(c.sites), len(c.texts), c.bytes)
		}
	}
}

// wrapped returns a reader of calls through two frames of libraries.
func wrapped() *Callers {
	r := New(opener(callerFiles()))
	for _, m := range callerMaps() {
		r.Observe(m)
	}
	return NewCallers(&endless{frames: []uint64{cxxNew, inVector, inWork, inMain, inMain, inMain, inMain, inMain, inMain, libNone}}, r, Program.Wrappers())
}

func TestCallersAllocateNothing(t *testing.T) {
	c := wrapped()
	var rec trace.Record
	read := func() {
		rec.Call.Caller = trace.Caller{}
		if err := c.ReadRecord(&rec); err != nil || rec.Call.Caller.Function != "work" {
			t.Fatal(rec.Call.Caller, err)
		}
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 0 {
		t.Errorf("%v allocations per call, want 0", n)
	}
}

func BenchmarkCallers(b *testing.B) {
	c := wrapped()
	var rec trace.Record
	b.ReportAllocs()
	for b.Loop() {
		rec.Call.Caller = trace.Caller{}
		if err := c.ReadRecord(&rec); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCallersOfTexts takes the caller from the texts of frames.
func BenchmarkCallersOfTexts(b *testing.B) {
	c := NewCallers(nil, nil, Program.Wrappers())
	stack := &trace.Stack{Frames: []uint64{1, 2, 3}, Names: []string{"strdup() from /lib/libc.so.6", "work() at work.c:3", "main() at work.c:9"}}
	b.ReportAllocs()
	for b.Loop() {
		c.Caller(1, stack)
	}
}
