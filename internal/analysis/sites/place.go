package sites

import (
	"strconv"
	"strings"

	"rtrace-bpf/internal/frametext"
)

// Place is a place in a program. Unknown parts are zero.
type Place struct {
	Function string // C functions without the ()
	File     string // source file
	Line     uint64 // counted from 1
	Module   string // path of the program or library
}

// Printable replaces control characters in a name with question marks, so that
// they cannot end a line or control a terminal.
func Printable(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return '?'
		}
		return c
	}, name)
}

// ParsePlace parses the text of a frame, as [frametext.Parse] does, and makes
// it printable.
func ParsePlace(text string) Place { return Place(frametext.Parse(Printable(strings.TrimSpace(text)))) }

// AppendPlaces appends the place of each function that the text of a frame
// names, the innermost first.
func AppendPlaces(dst []Place, text string) []Place {
	for {
		inner, outer := frametext.Outer(text)
		dst = append(dst, ParsePlace(inner))
		if outer == "" {
			return dst
		}
		text = outer
	}
}

// String returns "main at demo.c:12", "main from /bin/demo" or the known parts
// of it; it is empty if nothing is known.
func (p Place) String() string {
	s := p.Function
	if p.File != "" {
		s = join(s, "at "+p.File)
		if p.Line != 0 {
			s += ":" + strconv.FormatUint(p.Line, 10)
		}
		return s
	}
	if p.Module != "" {
		s = join(s, "from "+p.Module)
	}
	return s
}

// join joins two texts with a blank, unless one of them is empty.
func join(a, b string) string {
	if a != "" && b != "" {
		a += " "
	}
	return a + b
}
