package symbol

import (
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// legacyRust demangles a Rust name of the older scheme, which looks like a C++
// name with a hash as its last part: _ZN4core3fmt5write17h0123456789abcdefE
// is core::fmt::write. The hash is left out.
func legacyRust(name string) (string, bool) {
	if at := strings.LastIndex(name, "E."); at >= 0 {
		name = name[:at+1] // drop what the optimiser appended
	}
	const hash = len("17h0123456789abcdefE")
	rest, ok := strings.CutPrefix(name, "_ZN")
	if !ok || len(rest) <= hash || !isHash(rest[len(rest)-hash:]) {
		return "", false
	}
	rest = rest[:len(rest)-hash]
	var out strings.Builder
	for len(rest) > 0 {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n == 0 || n > len(rest)-digits {
			return "", false
		}
		if out.Len() > 0 {
			out.WriteString("::")
		}
		unescapeRust(&out, rest[digits:digits+n])
		rest = rest[digits+n:]
	}
	return out.String(), true
}

// isHash reports whether a name ends as Rust's do. A real hash has at least five different
// digits, which distinguishes it from part of a C++ name.
func isHash(end string) bool {
	if !strings.HasPrefix(end, "17h") || end[len(end)-1] != 'E' {
		return false
	}
	seen := uint16(0)
	for _, c := range []byte(end[3 : len(end)-1]) {
		switch {
		case c >= '0' && c <= '9':
			seen |= 1 << (c - '0')
		case c >= 'a' && c <= 'f':
			seen |= 1 << (c - 'a' + 10)
		default:
			return false
		}
	}
	return bits.OnesCount16(seen) >= 5
}

// rustEscapes holds the spellings of characters that linkers do not accept.
var rustEscapes = map[string]string{
	"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}

// unescapeRust writes one part of a name: $LT$ is <, $u7e$ is the character with that
// number, .. is ::, and an underscore protects a $ at the start.
func unescapeRust(out *strings.Builder, part string) {
	if strings.HasPrefix(part, "_$") {
		part = part[1:]
	}
	for len(part) > 0 {
		switch {
		case strings.HasPrefix(part, ".."):
			out.WriteString("::")
			part = part[2:]
			continue
		case part[0] == '$':
			code, rest, ok := strings.Cut(part[1:], "$")
			if text := rustCharacter(code); ok && text != "" {
				out.WriteString(text)
				part = rest
				continue
			}
		}
		out.WriteByte(part[0])
		part = part[1:]
	}
}

// rustCharacter returns the character for the text between two $, or "" if that is no
// escape.
func rustCharacter(code string) string {
	if text, ok := rustEscapes[code]; ok {
		return text
	}
	if digits, ok := strings.CutPrefix(code, "u"); ok && len(digits) <= 6 {
		c, err := strconv.ParseUint(digits, 16, 32)
		if err == nil && c >= ' ' && c < utf8.MaxRune && utf8.ValidRune(rune(c)) {
			return string(rune(c))
		}
	}
	return ""
}
