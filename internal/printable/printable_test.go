package printable_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"rtrace-bpf/internal/printable"
)

func TestName(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"malloc(size_t) ~é 日本":        "malloc(size_t) ~é 日本",
		"\x1b]0;title\a":              `\x1b]0;title\x07`,
		"a\nb\tc\r":                   `a\x0ab\x09c\x0d`,
		"\u009b31m":                   `\u009b31m`,
		"\x9b31m":                     `\x9b31m`,
		"\x7f":                        `\x7f`,
		"\u202egnp.exe\u2066\u200f":   `\u202egnp.exe\u2066\u200f`,
		"\ufffd":                      `\ufffd`,
		"line\u2028paragraph\u2029":   `line\u2028paragraph\u2029`,
		"a\u061cb\u200bc\ufeffd":      `a\u061cb\u200bc\ufeffd`,
		"tag\U000e0001":               `tag\U000e0001`,
		"soft\u00adno-break\u00a0all": "soft\u00adno-break\u00a0all",
	} {
		if got := printable.Name(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestText(t *testing.T) {
	const text, want = "a\n\tb\x1b[2J\r\n", "a\n\tb\\x1b[2J\\x0d\n"
	if got := printable.Text(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var out bytes.Buffer
	w := printable.NewWriter(&out)
	for _, part := range []string{"plain\n", text} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if out.String() != "plain\n"+want {
		t.Errorf("written: %q", out.String())
	}
}

// For any input the output has no control characters, and visible text does not
// change.
func FuzzText(f *testing.F) {
	f.Add("\x1b[31m\u009b\x9bx")
	f.Fuzz(func(t *testing.T, s string) {
		got := printable.Name(s)
		if strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q from %q", got, s)
		}
		if again := printable.Name(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
	})
}
