// Package svg writes SVG pictures of text and simple shapes, each with a CSS
// class for its colour. It knows nothing about the content.
package svg

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/report/theme"
)

// Picture is a picture in progress. Lengths are in pixels from the upper left
// corner.
type Picture struct {
	style strings.Builder
	body  strings.Builder
}

// New returns an empty picture. Each colour, including those of theme.Base, is
// a class for filling and, with the prefix "stroke-", one for lines.
func New(colours []theme.Colour) *Picture {
	p := &Picture{}
	p.style.WriteString("text{font:12px system-ui,'DejaVu Sans',sans-serif}\n" +
		".small{font-size:11px}.title{font-size:16px;font-weight:600}.head{font-size:13px;font-weight:600}\n" +
		".mono{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:11px}\n" +
		".end{text-anchor:end}.middle{text-anchor:middle}\n" +
		".crisp{shape-rendering:crispEdges}\n.thin{fill:none;stroke-width:1}.curve{fill:none;stroke-width:1.5;stroke-linejoin:round}\n")
	all := append(append([]theme.Colour(nil), theme.Base...), colours...)
	p.style.WriteString(theme.Classes("fill", all))
	for i := range all {
		all[i].Name = "stroke-" + all[i].Name
	}
	p.style.WriteString(theme.Classes("stroke", all))
	return p
}

// Style adds CSS.
func (p *Picture) Style(css string) { p.style.WriteString(css) }

// Rect draws a filled rectangle.
func (p *Picture) Rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&p.body, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`+"\n", Escape(class), number(x), number(y), number(w), number(h))
}

// Line draws a line.
func (p *Picture) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.body, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`+"\n", Escape(class), number(x1), number(y1), number(x2), number(y2))
}

// Text writes a line of text with its base line at y.
func (p *Picture) Text(class string, x, y float64, text string) {
	fmt.Fprintf(&p.body, `<text class="%s" x="%s" y="%s">%s</text>`+"\n", Escape(class), number(x), number(y), Escape(text))
}

// Turned writes a line of text upwards. It ends at y if its class is "end".
func (p *Picture) Turned(class string, x, y float64, text string) {
	fmt.Fprintf(&p.body, `<text class="%s" transform="rotate(-90 %[2]s %[3]s)" x="%[2]s" y="%[3]s">%[4]s</text>`+"\n", Escape(class), number(x), number(y), Escape(text))
}

// Path draws a path from SVG path commands.
func (p *Picture) Path(class, commands string) {
	fmt.Fprintf(&p.body, `<path class="%s" d="%s"/>`+"\n", Escape(class), Escape(commands))
}

// Begin begins a group. Browsers show title as the tooltip of its elements.
func (p *Picture) Begin(title string) {
	p.body.WriteString("<g>")
	if title != "" {
		p.body.WriteString("<title>" + Escape(title) + "</title>")
	}
	p.body.WriteString("\n")
}

// End ends the current group.
func (p *Picture) End() { p.body.WriteString("</g>\n") }

// Write writes the picture as a file of w by h pixels. title and text describe
// it to readers who do not see it.
func (p *Picture) Write(out io.Writer, w, h float64, title, text string) error {
	_, err := io.WriteString(out, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"+p.Element(w, h, title, text))
	return err
}

// Element returns the picture as an element, for use in a page or a file.
func (p *Picture) Element(w, h float64, title, text string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img" aria-label="%[3]s">
<title>%[3]s</title>
<desc>%[4]s</desc>
<style>
%[5]s</style>
<rect class="page" width="100%%" height="100%%"/>
%[6]s</svg>
`, number(w), number(h), Escape(title), Escape(text), p.style.String(), p.body.String())
}

// number formats a length with at most two decimals.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// Points returns a path of straight lines through pairs of x and y.
func Points(xy ...float64) string {
	var b strings.Builder
	for i := 0; i+1 < len(xy); i += 2 {
		if i == 0 {
			b.WriteByte('M')
		} else {
			b.WriteByte('L')
		}
		b.WriteString(number(xy[i]) + " " + number(xy[i+1]))
	}
	return b.String()
}

// Escape returns a text escaped for XML and HTML, within an element or a quoted
// attribute. Characters that XML forbids become U+FFFD.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\'':
			b.WriteString("&#39;")
		case r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff:
			b.WriteRune('\ufffd')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
