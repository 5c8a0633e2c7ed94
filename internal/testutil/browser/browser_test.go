package browser_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rtrace-bpf/internal/testutil/browser"
)

const page = `<!DOCTYPE html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>body{margin:0;background:#fff}@media (prefers-color-scheme:dark){body{background:#000}}</style>
<button id="b" style="position:absolute;left:50px;top:60px">press</button><p id="out">nothing</p>
<script>
document.getElementById('b').onclick = (e) => { document.getElementById('out').textContent = 'clicked ' + e.isTrusted; };
document.onkeydown = (e) => { document.getElementById('out').textContent = 'key ' + e.key; };
</script>`

func TestPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, path, 300, 200)
	if got := p.Text("#out"); got != "nothing" {
		t.Errorf("%q", got)
	}
	p.Click("#b")
	if got := p.Text("#out"); got != "clicked true" {
		t.Errorf("after a click: %q", got)
	}
	p.Key("ArrowLeft")
	if got := p.Text("#out"); got != "key ArrowLeft" {
		t.Errorf("after a key: %q", got)
	}
	var sum int
	if p.Eval("Promise.resolve(40 + 2)", &sum); sum != 42 {
		t.Errorf("%d", sum)
	}
	if f := p.Faults(); len(f) != 0 || !slices.Equal(p.Fetched(), []string{"file://" + path}) {
		t.Errorf("faults %v, fetched %v", f, p.Fetched())
	}
	for dark, want := range map[bool]uint32{false: 0xffff, true: 0} {
		p.Dark(dark)
		image, err := png.Decode(bytes.NewReader(p.Screenshot()))
		if err != nil {
			t.Fatal(err)
		}
		if r, _, _, _ := image.At(290, 190).RGBA(); r != want || image.Bounds().Dx() != 300 || image.Bounds().Dy() != 200 {
			t.Errorf("dark %v: red %#x, %v", dark, r, image.Bounds())
		}
	}
	p.Eval("setTimeout(() => { throw Error('odd') }); new Promise(done => setTimeout(done, 1))", nil)
	p.Eval("fetch('http://localhost:9/').catch(() => 0)", nil)
	if f := p.Faults(); len(f) < 2 {
		t.Errorf("faults that are not noticed: %v", f)
	}
}
