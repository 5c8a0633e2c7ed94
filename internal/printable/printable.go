// Package printable makes texts of unknown origin safe to print on a terminal.
// Names of processes, files and functions may contain control sequences.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name returns s with all invisible characters replaced, including line breaks:
// single bytes as \x1b, other characters as \u009b or \U000e0001.
func Name(s string) string { return replace(s, "") }

// Text is like Name, but keeps line breaks and tabs.
func Text(s string) string { return replace(s, "\n\t") }

func replace(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return hidden(r, keep) }) {
		return s
	}
	var out strings.Builder
	for i, r := range s {
		switch _, n := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case !hidden(r, keep):
			out.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// hidden reports whether r is a control character, changes the direction of
// text, breaks lines, has no width, or stands for a byte that is not text.
func hidden(r rune, keep string) bool {
	switch {
	case r >= ' ' && r < 0x7f:
		return false
	case r < 0xa0:
		return !strings.ContainsRune(keep, r)
	}
	const softHyphen = 0xad
	return r == utf8.RuneError || r != softHyphen && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Writer is an io.Writer that makes text safe. A character that is split
// between two Writes counts as bytes that are not text.
type Writer struct{ to io.Writer }

// NewWriter returns a Writer that writes to another writer.
func NewWriter(to io.Writer) *Writer { return &Writer{to} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if !bytes.ContainsFunc(p, func(r rune) bool { return hidden(r, "\n\t") }) {
		return w.to.Write(p)
	}
	if _, err := io.WriteString(w.to, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
