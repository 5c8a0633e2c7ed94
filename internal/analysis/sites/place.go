package sites

import (
	"strconv"
	"strings"
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

// ParsePlace takes the text of a frame apart. Resolvers write "main() at
// demo.c:12", "main() from /bin/demo", "from /bin/demo" and "in ??"; anything
// else is the name of a function.
func ParsePlace(text string) Place {
	text = Printable(strings.TrimSpace(text))
	if text == "in ??" {
		return Place{}
	}
	var p Place
	if module, ok := strings.CutPrefix(text, "from "); ok && modulePath(module) {
		return Place{Module: module}
	}
	if i := strings.LastIndex(text, " from "); i >= 0 && modulePath(text[i+len(" from "):]) {
		p.Module, text = text[i+len(" from "):], text[:i]
	}
	if i := strings.LastIndex(text, " at "); i >= 0 {
		if file, line, ok := cutLine(text[i+len(" at "):]); ok {
			p.File, p.Line, text = file, line, text[:i]
		}
	}
	p.Function = plain(text)
	return p
}

// modulePath says whether a text is the name of a mapping: a path, or one of
// the kernel's like [vdso].
func modulePath(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]")
}

// cutLine splits "demo.c:12".
func cutLine(s string) (file string, line uint64, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return "", 0, false
	}
	line, err := strconv.ParseUint(s[i+1:], 10, 64)
	return s[:i], line, err == nil
}

// plain takes the () off the name of a C function. "std::f()" has parameters,
// none, and keeps them.
func plain(function string) string {
	name, ok := strings.CutSuffix(function, "()")
	if !ok || strings.ContainsAny(name, ":( <") {
		return function
	}
	return name
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
