package symbol

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// Limits of demangling: a short name can stand for a very long one.
const (
	maxMangled   = 1 << 13 // bytes; longer names stay as they are
	demangledPow = 14      // results are cut at 1<<demangledPow bytes
)

// Demangle returns the name that a C++ or Rust function has in the source,
// with its parameters if the symbol tells them. Other names come back
// unchanged and with false.
func Demangle(name string) (text string, ok bool) {
	if len(name) < 3 || len(name) > maxMangled || name[0] != '_' {
		return name, false
	}
	defer func() {
		// The demangler panics on some names that no compiler makes; those
		// are no mangled names then.
		if recover() != nil {
			text, ok = name, false
		}
	}()
	if text, ok := legacyRust(name); ok {
		return text, true
	}
	text, err := demangle.ToString(name, demangle.MaxLength(demangledPow))
	if err != nil {
		return name, false
	}
	return text, true
}

// Source returns the name that a function has in the source, and whether the
// symbol was mangled. GTK's prefix for its internal aliases is left out, and
// control characters, which only a hostile file has, become question marks:
// they must not end a line or steer a terminal.
func Source(name string) (text string, mangled bool) {
	text, mangled = Demangle(name)
	if !mangled {
		text = strings.TrimPrefix(name, "IA__")
	}
	return Printable(text), mangled
}

// Printable replaces control characters by question marks.
func Printable(text string) string { return strings.Map(printable, text) }

func printable(c rune) rune {
	if c < ' ' || c >= 0x7f && c < 0xa0 {
		return '?'
	}
	return c
}

// Text returns how a function is printed: a C++ or Rust name as in the source,
// any other with () behind it.
func Text(name string) string {
	text, mangled := Source(name)
	if mangled {
		return text
	}
	return text + "()"
}
