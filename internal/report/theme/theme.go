// Package theme holds the colours of pictures and pages, each in a light and a
// dark form, and writes them as CSS.
package theme

import (
	"fmt"
	"strconv"
	"strings"
)

// Colour is a colour with a name that CSS takes.
type Colour struct {
	Name        string
	Light, Dark string // "#rrggbb"
}

// Base is what every picture and page needs.
var Base = []Colour{
	{"page", "#ffffff", "#14171c"},
	{"text", "#1c2229", "#e2e6eb"},
	{"muted", "#5b6570", "#9aa5b1"},
	{"line", "#ccd2d9", "#3a424d"},
	{"panel", "#f5f7f9", "#1c2128"},
	{"accent", "#1a5fb4", "#7fb2f0"},
	{"warn", "#b3361d", "#f08a73"},
}

// Variables returns CSS that declares each colour as a custom property, --NAME,
// for the scheme that the reader prefers.
func Variables(colours []Colour) string {
	var light, dark strings.Builder
	for _, c := range colours {
		fmt.Fprintf(&light, "--%s:%s;", c.Name, c.Light)
		fmt.Fprintf(&dark, "--%s:%s;", c.Name, c.Dark)
	}
	return ":root{color-scheme:light dark;" + light.String() + "}\n" +
		"@media (prefers-color-scheme:dark){:root{" + dark.String() + "}}\n"
}

// Classes returns CSS that gives elements of class NAME that colour, as the
// property fill or stroke. Programs that draw SVG know no custom properties.
func Classes(property string, colours []Colour) string {
	var light, dark strings.Builder
	for _, c := range colours {
		fmt.Fprintf(&light, ".%s{%s:%s}\n", c.Name, property, c.Light)
		fmt.Fprintf(&dark, ".%s{%s:%s}\n", c.Name, property, c.Dark)
	}
	return light.String() + "@media (prefers-color-scheme:dark){\n" + dark.String() + "}\n"
}

// Mix returns a colour between a and b: a at part 0, b at part 1.
func Mix(name string, a, b Colour, part float64) Colour {
	return Colour{name, mix(a.Light, b.Light, part), mix(a.Dark, b.Dark, part)}
}

func mix(a, b string, part float64) string {
	x, errX := strconv.ParseUint(strings.TrimPrefix(a, "#"), 16, 32)
	y, errY := strconv.ParseUint(strings.TrimPrefix(b, "#"), 16, 32)
	if errX != nil || errY != nil {
		return b
	}
	var out uint64
	for shift := 0; shift < 24; shift += 8 {
		from, to := float64(x>>shift&0xff), float64(y>>shift&0xff)
		out |= uint64(from+(to-from)*part+0.5) << shift
	}
	return fmt.Sprintf("#%06x", out)
}
