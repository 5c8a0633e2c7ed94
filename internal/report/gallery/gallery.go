// Package gallery writes a page of pictures and texts that are also files in
// the same folder. The page contains copies of them, so that it can be passed
// on alone.
package gallery

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/report/html"
	"rtrace-bpf/internal/report/svg"
)

// Item is a file: an SVG picture or a text.
type Item struct {
	Title string
	File  string // name, in the folder of the page
	Data  []byte
	// Picture reports that the file is a picture. Of a text the page contains
	// only the first lines.
	Picture bool
}

// Page is the content of a page.
type Page struct {
	Title string
	About []string // paragraphs
	Items []Item
	Files []string // names of other files in the folder, which are only linked
}

// most is the number of bytes of a text that the page contains at most.
const most = 64 << 10

const style = `body{padding:20px 24px;max-width:1280px;margin:0 auto}
h2{margin:32px 0 8px}
nav a{margin-right:14px}
a{color:var(--accent)}
img{display:block;max-width:100%;border:1px solid var(--line);border-radius:4px}
pre{overflow:auto;max-height:70vh;margin:0;padding:12px;background:var(--panel);border:1px solid var(--line);border-radius:4px;
font:12px/1.4 ui-monospace,"DejaVu Sans Mono",monospace}
`

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<h1>%s</h1>\n", svg.Escape(p.Title))
	for _, text := range p.About {
		fmt.Fprintf(&b, "<p class=\"muted\">%s</p>\n", svg.Escape(text))
	}
	b.WriteString("<nav>")
	for i, item := range p.Items {
		fmt.Fprintf(&b, "<a href=\"#item%d\">%s</a>\n", i, svg.Escape(item.Title))
	}
	b.WriteString("</nav>\n")
	for i := range p.Items {
		p.Items[i].write(&b, i)
	}
	if len(p.Files) > 0 {
		b.WriteString("<h2>Other files</h2>\n<p>")
		for _, f := range p.Files {
			fmt.Fprintf(&b, "%s\n", link(f))
		}
		b.WriteString("</p>\n")
	}
	page := html.Page{Title: p.Title, Style: style, Body: b.String()}
	return page.Write(w)
}

// link returns a link to a file in the folder, with its name escaped.
func link(file string) string {
	return fmt.Sprintf("<a href=\"%[1]s\">%[1]s</a>", svg.Escape(file))
}

func (item *Item) write(b *strings.Builder, n int) {
	fmt.Fprintf(b, "<section id=\"item%d\">\n<h2>%s</h2>\n<p>%s", n, svg.Escape(item.Title), link(item.File))
	if item.Picture {
		fmt.Fprintf(b, "</p>\n<img alt=\"%s\" src=\"data:image/svg+xml;base64,%s\">\n</section>\n",
			svg.Escape(item.Title), base64.StdEncoding.EncodeToString(item.Data))
		return
	}
	text := string(item.Data)
	if len(text) > most {
		text = text[:strings.LastIndexByte(text[:most], '\n')+1]
		fmt.Fprintf(b, " has %d bytes; this is its beginning", len(item.Data))
	}
	fmt.Fprintf(b, "</p>\n<pre tabindex=\"0\">%s</pre>\n</section>\n", svg.Escape(text))
}
