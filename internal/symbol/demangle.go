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

// Demangle returns the name that a C++ or Rust function has in the source, with its
// parameters if the symbol contains them. It returns other names unchanged, and false.
func Demangle(name string) (text string, ok bool) {
	if len(name) < 3 || len(name) > maxMangled || name[0] != '_' {
		return name, false
	}
	defer func() {
		// The demangler panics on some names that no compiler makes. They are treated as
		// not mangled.
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

// Source returns the name that a function has in the source, and whether the symbol was
// mangled. It leaves out GTK's prefix for internal aliases. It replaces control characters,
// which only a hostile file has, with question marks, so that a name cannot end a line or
// control a terminal.
func Source(name string) (text string, mangled bool) {
	text, mangled = Demangle(name)
	if !mangled {
		text = strings.TrimPrefix(name, "IA__")
	}
	return Printable(text), mangled
}

// Printable replaces control characters with question marks.
func Printable(text string) string { return strings.Map(printable, text) }

func printable(c rune) rune {
	if c < ' ' || c >= 0x7f && c < 0xa0 {
		return '?'
	}
	return c
}

// Text returns a function's name for printing: a C++ or Rust name as in the source, any
// other name followed by "()".
func Text(name string) string {
	text, mangled := Source(name)
	if mangled {
		return text
	}
	return text + "()"
}
