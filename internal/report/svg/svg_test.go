package svg_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"rtrace-bpf/internal/report/svg"
	"rtrace-bpf/internal/report/theme"
)

// texts parses XML to its end and returns its texts.
func texts(t *testing.T, data []byte) (all []string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, data)
		}
		if c, ok := token.(xml.CharData); ok {
			if s := strings.TrimSpace(string(c)); s != "" {
				all = append(all, s)
			}
		}
	}
}

func TestPicture(t *testing.T) {
	p := svg.New([]theme.Colour{{Name: "mine", Light: "#010203", Dark: "#040506"}})
	const nasty = "a<b>&\"'c\x00\x1b\ufffe\xffd"
	p.Begin(nasty)
	p.Rect("mine", 1, 2, 3.14159, 4)
	p.Text("text", 0, 0, nasty)
	p.Path("mine", svg.Points(1, 2, 3.5, 4))
	p.Line("stroke-mine", 0, 0, 1, 1)
	p.End()
	var out bytes.Buffer
	if err := p.Write(&out, 100, 50, nasty, "what it shows"); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range texts(t, out.Bytes()) {
		if s == "a<b>&\"'c\ufffd\ufffd\ufffd\ufffdd" {
			found++
		}
	}
	if found != 3 {
		t.Errorf("the text occurs %d times\n%s", found, out.String())
	}
	for _, want := range []string{
		`<rect class="mine" x="1" y="2" width="3.14" height="4"/>`, `d="M1 2L3.5 4"`, ".mine{fill:#010203}", ".stroke-mine{stroke:#040506}",
		`width="100" height="50" viewBox="0 0 100 50"`, "<desc>what it shows</desc>",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}
