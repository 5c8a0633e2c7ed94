package suppress_test

import (
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/suppress"
)

// stack is that of a call of operator new in a C++ program.
var stack = []suppress.Frame{
	{Source: "operator new(unsigned long)", Linker: "_Znwm", Module: "/usr/lib/libstdc++.so.6"},
	{Source: "app::Cache::put(int)", Linker: "_ZN3app5Cache3putEi", File: "/src/cache.cc", Module: "/opt/app"},
	{Source: "load", Linker: "load", File: "/src/load.c", Module: "/opt/lib/libload.so.2"},
	{Source: "main", Linker: "main", File: "/src/main.cc", Module: "/opt/app"},
	{Module: "/usr/lib/libc.so.6"},
}

func TestMatch(t *testing.T) {
	block := func(frames ...string) string {
		return "{\n  a name\n  Memcheck:Leak\n  match-leak-kinds: all\n  " + strings.Join(frames, "\n  ") + "\n}\n"
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		// LeakSanitizer: a part of a function, file or module
		{"leak:Cache", true},
		{"leak:app::Cache::put", true},
		{"leak:_ZN3app", true},
		{"leak:libload.so", true},
		{"leak:cache.cc", true},
		{"leak:^load$", true},
		{"leak:^loa$", false},
		{"leak:^main", true},
		{"leak:app*put", true},
		{"leak:put*app", false},
		{"leak:nothing", false},
		{"# leak:main", false},
		{"race:main", false},
		// valgrind: the innermost frames
		{block("fun:_Znwm", "fun:_ZN3app5Cache3putEi"), true},
		{block("fun:_Znwm"), true},
		{block("fun:_Zn?m", "fun:_ZN3app*"), true},
		{block("fun:_ZN3app5Cache3putEi"), false}, // it is not the innermost
		{block("fun:_Znwm", "fun:load"), false},
		{block("fun:_Znwm", "...", "fun:main"), true},
		{block("...", "fun:main", "obj:*/libc.so*"), true},
		{block("...", "fun:main", "fun:load"), false},
		{block("fun:_Znwm", "...", "obj:/opt/lib/libload.so*"), true},
		{block("fun:_Znwm", "src:*/cache.cc"), true},
		{block("fun:_Znwm", "obj:*", "fun:load", "fun:main", "obj:*"), true},
		{block("fun:_Znwm", "...", "fun:nothing"), false},
		{block("...", "...", "fun:main"), true},
		{"{\n n\n Memcheck:Cond\n fun:_Znwm\n}\n", false},
		{"{\n n\n Helgrind,Memcheck:Leak\n fun:_Znwm\n}\n", true},
	} {
		var l suppress.List
		if err := l.Read(strings.NewReader(tt.text)); err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if got := l.Match(stack) == 0; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.text, got, tt.want)
		}
	}
}

func TestSeveral(t *testing.T) {
	var l suppress.List
	const text = "# ours\nleak:nothing\n\nleak:load\n{\n one\n Memcheck:Leak\n fun:*\n}\nthread:x\n"
	if err := l.Read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if len(l.Rules) != 3 || l.Rules[2].Name != "one" || l.Others != 1 || l.Match(stack) != 1 || l.Match(stack[:2]) != 2 || l.Match(nil) != -1 {
		t.Errorf("%+v", l)
	}
}

func TestWrong(t *testing.T) {
	for text, want := range map[string]string{
		"leak":                            "line 1: ",
		"leak:main\nmain":                 "line 2: ",
		"{\n a\n Memcheck:Leak\n fun:f\n": "line 4: the suppression has no end",
		"{\n a\n Memcheck:Leak\n f\n}":    `line 5: "f" is no frame`,
		"{\n a\n}":                        "line 3: a suppression has a name",
		"{\n a\n Memcheck:Leak\n}":        "line 4: the suppression a has no frames",
	} {
		var l suppress.List
		if err := l.Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("leak:main\n{\n a\n Memcheck:Leak\n ...\n fun:*\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		var l suppress.List
		if err := l.Read(strings.NewReader(text)); err == nil {
			l.Match(stack)
		}
	})
}
