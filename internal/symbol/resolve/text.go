package resolve

import (
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// parsedText is what the text of a frame says.
type parsedText struct {
	caller trace.Caller
	module string
}

// parseText takes the text of a frame apart, as sp-rtrace's resolver and ours
// write it: "name() at file:line", "name() from /path", "from /path", "in ??".
// Other texts are names of functions. Nothing of text is kept.
func parseText(text string) (p parsedText) {
	switch {
	case text == unknown.text || text == "":
		return p
	case strings.HasPrefix(text, "from "):
		p.module = strings.Clone(text[len("from "):])
		return p
	}
	name := text
	if i := strings.LastIndex(text, " at "); i >= 0 {
		file, number, _ := cutLast(text[i+len(" at "):], ':')
		if line, err := strconv.ParseUint(number, 10, 32); err == nil && file != "" {
			name, p.caller.File, p.caller.Line = text[:i], strings.Clone(file), line
		}
	}
	if i := strings.LastIndex(name, " from "); i >= 0 {
		p.module = strings.Clone(name[i+len(" from "):])
		name = name[:i]
	}
	p.caller.Function = strings.Clone(strings.TrimSuffix(name, "()"))
	return p
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// isWrapper says whether the text is of a frame that is not the program's.
func (p *parsedText) isWrapper() bool {
	if isRuntime(p.module) {
		return true
	}
	name := p.caller.Function
	if isWrapper(&lines.Frame{Function: name}) {
		return true
	}
	// A function that was made from a template has its result in front.
	name = qualified(name)
	space, _, ok := strings.Cut(name, "::")
	return ok && slices.Contains(runtimeSpaces, space) || isAllocator(name)
}

// qualified returns the name of a function from a demangled one: without what is
// returned and without parameters.
func qualified(name string) string {
	if at := strings.Index(name, "operator "); at == 0 {
		return name
	}
	depth, start := 0, 0
	for i := range len(name) {
		switch name[i] {
		case '<':
			depth++
		case '>':
			depth--
		case '(':
			if depth == 0 && i > 0 {
				return name[start:i]
			}
			depth++
		case ')':
			depth--
		case ' ':
			if depth == 0 {
				start = i + 1
			}
		}
	}
	return name[start:]
}
