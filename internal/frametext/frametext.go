// Package frametext parses the texts that describe the frames of a stack.
package frametext

import (
	"strconv"
	"strings"
)

// Text is the parsed text of a frame. Missing parts are zero.
type Text struct {
	Function string // C functions without the ()
	File     string // source file
	Line     uint64 // counted from 1
	Module   string // path of the program or library
}

// Unknown is the resolvers' text for an address outside of all mappings.
const Unknown = "in ??"

// InlinedBy separates the texts of functions that are active at the same
// address, the innermost first: "f() at a.h:3 (inlined by) main() at a.c:12".
const InlinedBy = " (inlined by) "

// Outer splits a text into the innermost function and the functions that it is
// inlined into, which are empty for most.
func Outer(text string) (inner, outer string) {
	inner, outer, _ = strings.Cut(text, InlinedBy)
	return inner, outer
}

// Parse parses a text. Resolvers write "main() at demo.c:12", "main() from
// /bin/demo", "from /bin/demo" and Unknown; any other text is the name of a
// function. Of inlined functions only the innermost is parsed. The parts share
// the memory of the text.
func Parse(text string) Text {
	text, _ = Outer(strings.TrimSpace(text))
	if text == Unknown {
		return Text{}
	}
	var t Text
	if module, ok := strings.CutPrefix(text, "from "); ok && isModule(module) {
		return Text{Module: module}
	}
	if i := strings.LastIndex(text, " at "); i >= 0 {
		if file, line, ok := cutLine(text[i+len(" at "):]); ok {
			t.File, t.Line, text = file, line, text[:i]
		}
	}
	if i := strings.LastIndex(text, " from "); i >= 0 && isModule(text[i+len(" from "):]) {
		t.Module, text = text[i+len(" from "):], text[:i]
	}
	t.Function = Plain(text)
	return t
}

// isModule reports whether a text is the name of a mapping: a path, or one of
// the kernel's such as [vdso].
func isModule(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]")
}

// cutLine splits "demo.c:12".
func cutLine(s string) (file string, line uint64, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return "", 0, false
	}
	line, err := strconv.ParseUint(s[i+1:], 10, 32)
	return s[:i], line, err == nil
}

// Plain removes the () from the name of a C function. It does not change C++
// functions such as "std::f()", where () is an empty list of parameters.
func Plain(function string) string {
	name, ok := strings.CutSuffix(function, "()")
	if !ok || strings.ContainsAny(name, ":( <") {
		return function
	}
	return name
}
