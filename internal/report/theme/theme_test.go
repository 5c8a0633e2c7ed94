package theme_test

import (
	"math"
	"strconv"
	"testing"

	"rtrace-bpf/internal/report/theme"
)

func TestCSS(t *testing.T) {
	c := []theme.Colour{{"a", "#000001", "#000002"}, {"b", "#000003", "#000004"}}
	want := ":root{color-scheme:light dark;--a:#000001;--b:#000003;}\n@media (prefers-color-scheme:dark){:root{--a:#000002;--b:#000004;}}\n"
	if got := theme.Variables(c); got != want {
		t.Errorf("%q", got)
	}
	want = ".a{fill:#000001}\n.b{fill:#000003}\n@media (prefers-color-scheme:dark){\n.a{fill:#000002}\n.b{fill:#000004}\n}\n"
	if got := theme.Classes("fill", c); got != want {
		t.Errorf("%q", got)
	}
}

func TestMix(t *testing.T) {
	a, b := theme.Colour{"a", "#000000", "#ff8000"}, theme.Colour{"b", "#ffffff", "#ff0080"}
	for part, want := range map[float64]theme.Colour{
		0:   {"m", "#000000", "#ff8000"},
		0.5: {"m", "#808080", "#ff4040"},
		1:   {"m", "#ffffff", "#ff0080"},
	} {
		if got := theme.Mix("m", a, b, part); got != want {
			t.Errorf("%v: %v, want %v", part, got, want)
		}
	}
}

// Text is readable on the page in both schemes, with a contrast of at least
// 4.5.
func TestContrast(t *testing.T) {
	at := map[string]theme.Colour{}
	for _, c := range theme.Base {
		at[c.Name] = c
	}
	for _, ink := range []string{"text", "muted", "accent", "warn"} {
		for _, paper := range []string{"page", "panel"} {
			light := contrast(t, at[ink].Light, at[paper].Light)
			dark := contrast(t, at[ink].Dark, at[paper].Dark)
			if light < 4.5 || dark < 4.5 {
				t.Errorf("%s on %s: %.1f and %.1f", ink, paper, light, dark)
			}
		}
	}
}

// contrast returns the contrast ratio as WCAG 2 defines it.
func contrast(t *testing.T, a, b string) float64 {
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, c string) float64 {
	n, err := strconv.ParseUint(c[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(v uint64) float64 {
		f := float64(v&0xff) / 255
		if f <= 0.03928 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}
