// Package html writes self-contained pages: style, scripts and data are in one
// file, and a policy in its head prevents the browser from fetching anything.
// It knows nothing about the content.
package html

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/report/svg"
	"rtrace-bpf/internal/report/theme"
)

// Page is the content of a page.
type Page struct {
	Title   string
	Colours []theme.Colour // in addition to theme.Base
	Style   string         // CSS, added after that of all pages
	Body    string         // HTML
	Data    []Data
	Script  string // runs after the body and the data are loaded
}

// Data is JSON data for the script, which reads it from the element with the
// given ID: JSON.parse(document.getElementById(ID).textContent).
type Data struct {
	ID    string
	Value any
}

const style = `*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:14px/1.45 system-ui,"DejaVu Sans",sans-serif}
h1{font-size:18px;margin:0}h2{font-size:15px;margin:0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:600;color:var(--muted)}
th,td{padding:3px 12px 3px 0;border-bottom:1px solid var(--line)}
.number{text-align:right}.muted{color:var(--muted)}.mono{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:12px}
button,select,input[type=number]{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:4px;padding:3px 9px}
button:hover{border-color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
input[type=range]{accent-color:var(--accent)}
`

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	colours := append(append([]theme.Colour(nil), theme.Base...), p.Colours...)
	// Our scripts contain this text only in comments or strings.
	script := "\n" + strings.ReplaceAll(p.Script, "</script", `<\/script`)
	// The policy permits this script and no other, whatever the page contains.
	hash := sha256.Sum256([]byte(script))
	if _, err := fmt.Fprintf(w, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
%s%s%s</style>
</head>
<body>
%s
`, base64.StdEncoding.EncodeToString(hash[:]), svg.Escape(p.Title), theme.Variables(colours), style, p.Style, p.Body); err != nil {
		return err
	}
	for _, d := range p.Data {
		// Marshal encodes < as \u003c, so no text can end the element.
		text, err := json.Marshal(d.Value)
		if err != nil {
			return fmt.Errorf("writing data %s of the page: %w", d.ID, err)
		}
		if _, err := fmt.Fprintf(w, "<script type=\"application/json\" id=\"%s\">%s</script>\n", svg.Escape(d.ID), text); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "<script>%s</script>\n</body>\n</html>\n", script)
	return err
}
