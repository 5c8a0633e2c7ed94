package html_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"rtrace-bpf/internal/report/html"
	"rtrace-bpf/internal/report/theme"
)

func TestPage(t *testing.T) {
	p := html.Page{
		Title: `a</title><script>"x"`, Colours: []theme.Colour{{Name: "mine", Light: "#010203", Dark: "#040506"}},
		Style: "p{color:var(--mine)}\n", Body: "<p>Text</p>",
		Data:   []html.Data{{ID: "d", Value: map[string]string{"name": "</script><script>alert(1)//\u2028"}}},
		Script: "let s = '</script>';\n",
	}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{
		"<title>a&lt;/title&gt;&lt;script&gt;&#34;x&#34;</title>", "--mine:#010203;", "p{color:var(--mine)}", "<p>Text</p>",
		`<script type="application/json" id="d">{"name":"\u003c/script\u003e\u003cscript\u003ealert(1)//\u2028"}</script>`,
		`let s = '<\/script>';`, "default-src 'none'",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	// The policy permits this script by its hash, and no other.
	_, script, _ := strings.Cut(text, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	hash := sha256.Sum256([]byte(script))
	if want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "';"; !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
	if n := strings.Count(text, "</script>"); n != 2 {
		t.Errorf("%d scripts end", n)
	}
	p.Data[0].Value = make(chan int)
	if err := p.Write(&out); err == nil {
		t.Error("data that cannot be encoded as JSON is accepted")
	}
	if err := (&html.Page{}).Write(failing{}); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }
