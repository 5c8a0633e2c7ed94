package gallery_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/report/gallery"
	"rtrace-bpf/internal/testutil/browser"
)

const picture = `<svg xmlns="http://www.w3.org/2000/svg" width="321" height="45"><rect width="10" height="10"/></svg>`

func write(t *testing.T, p *gallery.Page) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The page is self-contained: a browser shows its pictures and fetches nothing.
func TestPage(t *testing.T) {
	text := write(t, &gallery.Page{
		Title: "a <b>", About: []string{"one & two"},
		Items: []gallery.Item{
			{Title: "First", File: "first.svg", Data: []byte(picture), Picture: true},
			{Title: "Second", File: "second.txt", Data: []byte("x</pre><script>fail()</script>\n\x1b[2J")},
		},
		Files: []string{"graph.dot"},
	})
	path := filepath.Join(t.TempDir(), "index.html")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, path, 800, 600)
	var widths []int
	p.Eval(`Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth)))`, &widths)
	if len(widths) != 1 || widths[0] != 321 {
		t.Errorf("pictures %v", widths)
	}
	var links []string
	p.Eval(`[...document.links].map(a => a.getAttribute("href"))`, &links)
	if got := strings.Join(links, " "); got != "#item0 #item1 first.svg second.txt graph.dot" {
		t.Errorf("links %s", got)
	}
	if got := p.Text("pre"); got != "x</pre><script>fail()</script>\n\ufffd[2J" {
		t.Errorf("%q", got)
	}
	if got := p.Text("h1"); got != "a <b>" {
		t.Errorf("%q", got)
	}
	if faults := p.Faults(); len(faults) > 0 {
		t.Errorf("%v", faults)
	}
}

// The page contains only whole lines from the beginning of a long text.
func TestLong(t *testing.T) {
	line := strings.Repeat("y", 99) + "\n"
	text := write(t, &gallery.Page{Items: []gallery.Item{{File: "long.txt", Data: []byte(strings.Repeat(line, 1e5))}}})
	if n := strings.Count(text, line); n != 655 || !strings.Contains(text, "has 10000000 bytes; this is its beginning") || strings.Contains(text, "y</pre>") {
		t.Errorf("%d lines, %d bytes", n, len(text))
	}
	// It contains nothing of a long text without line breaks.
	if text := write(t, &gallery.Page{Items: []gallery.Item{{File: "z", Data: bytes.Repeat([]byte("z"), 1e6)}}}); len(text) > 1e4 {
		t.Errorf("%d bytes", len(text))
	}
}
