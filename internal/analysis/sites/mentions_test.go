package sites_test

import (
	"testing"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/trace"
)

func TestMentions(t *testing.T) {
	c := trace.Call{
		Function: "malloc",
		Stack:    trace.Stack{Frames: []uint64{0x10ab, 0x20}, Names: []string{"f(int) from /lib/libx.so", ""}},
		Args:     []trace.Arg{{Name: "path", Value: "/etc/a b"}},
		Caller:   trace.Caller{Function: "g", File: "g.c", Line: 7},
	}
	for text, want := range map[string]bool{
		"f": true, "f(int)": true, "libx": true, "10ab f": true, "0x20": true, "path = /etc/a b": true, "g at g.c:7": true, "": true,
		"malloc": false, "zz": false, "from /lib/libx.so 0x20": false,
	} {
		if sites.Mentions(&c, text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	c.Stack.Names, c.Caller = nil, trace.Caller{}
	if !sites.Mentions(&c, "0x10ab") || sites.Mentions(&c, "f(int)") || sites.Mentions(&c, "??") {
		t.Error("matches a stack without names")
	}
	if sites.Mentions(&trace.Call{}, "") {
		t.Error("matches an empty call")
	}
}
