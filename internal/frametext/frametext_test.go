package frametext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/frametext"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]frametext.Text{
		"":                                  {},
		"in ??":                             {},
		"main() at demo.c:12":               {Function: "main", File: "demo.c", Line: 12},
		"main() from /bin/x y":              {Function: "main", Module: "/bin/x y"},
		"from /usr/lib/libc.so.6 (deleted)": {Module: "/usr/lib/libc.so.6 (deleted)"},
		"time() from [vdso]":                {Function: "time", Module: "[vdso]"},
		"from [vdso]":                       {Module: "[vdso]"},
		"std::f() from /lib/x.so":           {Function: "std::f()", Module: "/lib/x.so"},
		"operator new(unsigned long) from /lib/libstdc++.so.6":        {Function: "operator new(unsigned long)", Module: "/lib/libstdc++.so.6"},
		"std::vector<int, std::allocator<int> >::at(int) at /a b.h:7": {Function: "std::vector<int, std::allocator<int> >::at(int)", File: "/a b.h", Line: 7},
		"f() at /a from /b.c:12":                                      {Function: "f", File: "/a from /b.c", Line: 12},
		"f() from /b at a.c:12":                                       {Function: "f", File: "a.c", Line: 12, Module: "/b"},
		"plain":                                                       {Function: "plain"},
		"f at x":                                                      {Function: "f at x"},
		"f from here":                                                 {Function: "f from here"},
		"from here":                                                   {Function: "from here"},
		"f(int) const at :5":                                          {Function: "f(int) const at :5"},
		"f() at a.c:4294967296":                                       {Function: "f() at a.c:4294967296"},
		"f() at a.h:3 (inlined by) main() at a.c:12":                  {Function: "f", File: "a.h", Line: 3},
		"f(int) from /x (inlined by) main() at a.c:12":                {Function: "f(int)", Module: "/x"},
		" main() at demo.c:12 \t":                                     {Function: "main", File: "demo.c", Line: 12},
	} {
		if d := cmp.Diff(want, frametext.Parse(text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

// FuzzParse checks that all parts occur in the text, without overlap.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"main() at demo.c:12", "main() from /bin/demo", "from [vdso]", "in ??", "f() from /a from /b at c:1", " at :0", "from /", "int* std::copy<int*>(int*, int*) at v.h:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := frametext.Parse(text)
		for _, part := range []string{p.Function, p.File, p.Module} {
			if !strings.Contains(text, part) {
				t.Fatalf("%q does not contain %q", text, part)
			}
		}
		if n := len(p.Function) + len(p.File) + len(p.Module); n > len(text) {
			t.Fatalf("%d bytes from %d", n, len(text))
		}
		if p.Line != 0 && p.File == "" {
			t.Fatalf("%q has a line but no file", text)
		}
	})
}
