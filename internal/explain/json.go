package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"

	"rtrace-bpf/internal/printable"
)

// WriteJSON writes a document as one line of JSON. Characters that could affect a terminal are
// escaped. docs/answers.md documents the keys.
func (d *Document) WriteJSON(w io.Writer) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return err
	}
	_, err := w.Write(escape(text.Bytes()))
	return err
}

// escape replaces what a terminal would not show in a line of JSON by escapes.
func escape(line []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(line) {
		if r > 0x7e && printable.Name(string(r)) != string(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
			continue
		}
		out.WriteRune(r)
	}
	return out.Bytes()
}
