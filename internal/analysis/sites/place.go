package sites

import (
	"strconv"
	"strings"

	"rtrace-bpf/internal/frametext"
)

// Place is what is known of a place in a program. Unknown parts are zero.
type Place struct {
	Function string // without () behind the names of C functions
	File     string // source file
	Line     uint64 // counted from 1
	Module   string // path of the program or library
}

// Printable returns a name with question marks in place of control characters:
// they must not end a line or steer a terminal.
func Printable(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			return '?'
		}
		return c
	}, name)
}

// ParsePlace takes the text of a frame apart, as [frametext.Parse] does, and
// makes it printable.
func ParsePlace(text string) Place { return Place(frametext.Parse(Printable(strings.TrimSpace(text)))) }

// AppendPlaces appends what the text of a frame says of each function that is
// active there, the innermost first.
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

// String is "main at demo.c:12", "main from /bin/demo" or as much of it as is
// known, and empty if nothing is.
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

// join puts a blank between two texts that are not empty.
func join(a, b string) string {
	if a != "" && b != "" {
		a += " "
	}
	return a + b
}
