// Package theme defines the colours of pictures and pages, each in a light and
// a dark form, and formats them as CSS.
package theme

import (
	"fmt"
	"strconv"
	"strings"
)

// Colour is a named colour. Name must be valid in CSS.
type Colour struct {
	Name        string
	Light, Dark string // "#rrggbb"
}

// Base holds the colours that every picture and page uses.
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
// for the colour scheme that the reader prefers.
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
// property fill or stroke. It does not use custom properties, because many SVG
// programs do not support them.
func Classes(property string, colours []Colour) string {
	var light, dark strings.Builder
	for _, c := range colours {
		fmt.Fprintf(&light, ".%s{%s:%s}\n", c.Name, property, c.Light)
		fmt.Fprintf(&dark, ".%s{%s:%s}\n", c.Name, property, c.Dark)
	}
	return light.String() + "@media (prefers-color-scheme:dark){\n" + dark.String() + "}\n"
}

// Mix returns a colour between a and b: a if part is 0, b if it is 1.
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
