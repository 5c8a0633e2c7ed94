package sites

import (
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
		{Frame{0x1f, Place{Module: "/x"}}, "0x000000000000001f from /x", "0x000000000000001f", "0x000000000000001f from /x"},
		{Frame{0x1f, Place{Function: "f", Module: "/x"}}, "f from /x", "0x000000000000001f", "f"},
		{Frame{0, Place{Function: "f", File: "a.c", Line: 3, Module: "/x"}}, "f at a.c:3", "", "f"},
		{Frame{0, Place{File: "a.c"}}, "at a.c", "", "at a.c"},
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
	f := Frame{0x20, Place{Function: "f", Module: "/s"}}
	late := Frame{0x30, Place{Function: "late", Module: "/lib/late.so"}}
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
		{"nothing but operator new", trace.Stack{Frames: []uint64{0x10}, Names: []string{"operator new[](unsigned long)"}}, trace.Caller{}, 1, []Frame{{0x10, Place{Function: "operator new[](unsigned long)"}}}},
		{"only texts for all frames count", trace.Stack{Frames: []uint64{0x50, 0x60}, Names: []string{"f()"}}, trace.Caller{}, 0, []Frame{{Addr: 0x50}, {Addr: 0x60}}},
		{"caller", trace.Stack{}, trace.Caller{Function: "f", File: "a.c", Line: 3}, 0, []Frame{{0, Place{Function: "source f", File: "a.c", Line: 3}}}},
		{"nothing", trace.Stack{}, trace.Caller{}, 1, []Frame{{}}},
	} {
		got := fr.Append([]Frame{{Addr: 1}}, 4, &tt.stack, &tt.caller, tt.depth)
		if d := cmp.Diff(append([]Frame{{Addr: 1}}, tt.want...), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	if asked == 0 {
		t.Error("the name of a frame without text was not asked for")
	}
	if got := (&Framer{}).Caller(&trace.Caller{Function: "f()\n", File: "a\r"}); got.Function != "f()?" || got.File != "a?" {
		t.Errorf("without Source the caller is %q in %q", got.Function, got.File)
	}
}
