package sites

import (
	"strings"
	"testing"
)

// FuzzParsePlace checks that all parts occur in the text and contain no control
// characters.
func FuzzParsePlace(f *testing.F) {
	for _, s := range []string{"main() at demo.c:12", "main() from /bin/demo", "from [vdso]", "in ??", "f() from /a from /b at c:1", " at :0", "from /"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := ParsePlace(text)
		for _, part := range []string{p.Function, p.File, p.Module} {
			if part != Printable(part) || !strings.Contains(Printable(text), part) {
				t.Fatalf("%q does not contain %q", text, part)
			}
		}
		if p.Line != 0 && p.File == "" {
			t.Fatalf("%q has a line but no file", text)
		}
		_ = Frame{Place: p}.String()
	})
}
