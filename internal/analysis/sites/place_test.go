package sites

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]Place{
		"":                            {},
		"in ??\n":                     {},
		"main() at demo.c:12":         {Function: "main", File: "demo.c", Line: 12},
		"a\nb\x1b[1m from /x\u0085y":  {Function: "a?b?[1m", Module: "/x?y"},
		" main() at \x00demo.c:12 \t": {Function: "main", File: "?demo.c", Line: 12},
	} {
		if d := cmp.Diff(want, ParsePlace(text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, tt := range []struct {
		f             Frame
		text, address string
		label         string
	}{
		{Frame{}, "??", "", "??"},
		{Frame{Addr: 0x1f}, "0x000000000000001f", "0x000000000000001f", "0x000000000000001f"},
		{Frame{Addr: 0x1f, Place: Place{Module: "/x"}}, "0x000000000000001f from /x", "0x000000000000001f", "0x000000000000001f from /x"},
		{Frame{Addr: 0x1f, Place: Place{Function: "f", Module: "/x"}}, "f from /x", "0x000000000000001f", "f"},
		{Frame{Addr: 0, Place: Place{Function: "f", File: "a.c", Line: 3, Module: "/x"}}, "f at a.c:3", "", "f"},
		{Frame{Addr: 0, Place: Place{File: "a.c"}}, "at a.c", "", "at a.c"},
	} {
		if tt.f.String() != tt.text || tt.f.Address() != tt.address || tt.f.Label() != tt.label {
			t.Errorf("%+v: %q, %q, %q", tt.f, tt.f.String(), tt.f.Address(), tt.f.Label())
		}
	}
}

func TestFrames(t *testing.T) {
	asked := 0
	fr := Framer{
		Name: func(pid int32, addr uint64) string {
			asked++
			if pid == 4 && addr == 0x30 {
				return "late() from /lib/late.so"
			}
			return "in ??"
		},
		Source: func(s string) string { return "source " + s },
	}
	named := trace.Stack{Frames: []uint64{0x10, 0x20, 0x30, 0x40}, Names: []string{"operator new(unsigned long) from /s", "f() from /s", "in ??", ""}}
	f := Frame{Addr: 0x20, Place: Place{Function: "f", Module: "/s"}}
	late := Frame{Addr: 0x30, Place: Place{Function: "late", Module: "/lib/late.so"}}
	for _, tt := range []struct {
		name   string
		stack  trace.Stack
		caller trace.Caller
		depth  int
		want   []Frame
	}{
		{"all", named, trace.Caller{Function: "unused"}, 0, []Frame{f, late, {Addr: 0x40}}},
		{"two", named, trace.Caller{}, 2, []Frame{f, late}},
		{"one", named, trace.Caller{}, 1, []Frame{f}},
		{"nothing but operator new", trace.Stack{Frames: []uint64{0x10}, Names: []string{"operator new[](unsigned long)"}}, trace.Caller{}, 1, []Frame{{Addr: 0x10, Place: Place{Function: "operator new[](unsigned long)"}}}},
		{"only texts for all frames count", trace.Stack{Frames: []uint64{0x50, 0x60}, Names: []string{"f()"}}, trace.Caller{}, 0, []Frame{{Addr: 0x50}, {Addr: 0x60}}},
		{"caller", trace.Stack{}, trace.Caller{Function: "f", File: "a.c", Line: 3}, 0, []Frame{{Addr: 0, Place: Place{Function: "source f", File: "a.c", Line: 3}}}},
		{"nothing", trace.Stack{}, trace.Caller{}, 1, []Frame{{}}},
	} {
		got := fr.Append([]Frame{{Addr: 1}}, 4, &tt.stack, &tt.caller, tt.depth)
		if d := cmp.Diff(append([]Frame{{Addr: 1}}, tt.want...), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	if asked == 0 {
		t.Error("Name was not called for a frame without text")
	}
	if got := (&Framer{}).Caller(&trace.Caller{Function: "f()\n", File: "a\r"}); got.Function != "f()?" || got.File != "a?" {
		t.Errorf("without Source the caller is %q at %q", got.Function, got.File)
	}
}

// TestInlinedFrames checks that Inlined makes a frame of each function of a
// text, and that leading frames of operator new are left out.
func TestInlinedFrames(t *testing.T) {
	stack := trace.Stack{
		Frames: []uint64{0x10, 0x20, 0x30},
		Names: []string{
			"operator new(unsigned long) at new.h:1 (inlined by) operator new[](unsigned long) at new.h:2 (inlined by) make() at a.h:3 (inlined by) f() from /x",
			"in ??", "g() at g.c:9",
		},
	}
	name := func(int32, uint64) string { return "h() at h.c:5 (inlined by) i() at i.c:6" }
	for _, tt := range []struct {
		inlined bool
		depth   int
		want    []string
	}{
		{true, 0, []string{"16 make at a.h:3 inlined", "16 f from /x", "32 h at h.c:5 inlined", "32 i at i.c:6", "48 g at g.c:9"}},
		{true, 3, []string{"16 make at a.h:3 inlined", "16 f from /x", "32 h at h.c:5 inlined"}},
		{false, 0, []string{"32 h at h.c:5", "48 g at g.c:9"}},
	} {
		fr := Framer{Name: name, Inlined: tt.inlined}
		var got []string
		for _, f := range fr.Append(nil, 4, &stack, &trace.Caller{}, tt.depth) {
			text := fmt.Sprint(f.Addr, " ", f)
			if f.Inlined {
				text += " inlined"
			}
			got = append(got, text)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("inlined %v, depth %d (-want +got):\n%s", tt.inlined, tt.depth, d)
		}
	}
}

func TestAppendPlaces(t *testing.T) {
	got := AppendPlaces([]Place{{Module: "/kept"}}, "a() at a.h:1 (inlined by) b from /b (inlined by) c(int) at c.c:3")
	want := []Place{{Module: "/kept"}, {Function: "a", File: "a.h", Line: 1}, {Function: "b", Module: "/b"}, {Function: "c(int)", File: "c.c", Line: 3}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
