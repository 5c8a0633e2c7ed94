package resolve

import (
	"slices"
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/trace"
)

// parsedText is the contents of the text of a frame.
type parsedText struct {
	caller trace.Caller
	module string
}

// parseText parses the text of a frame. It keeps nothing of text.
func parseText(text string) parsedText {
	t := frametext.Parse(text)
	return parsedText{
		caller: trace.Caller{Function: strings.Clone(t.Function), File: strings.Clone(t.File), Line: t.Line},
		module: strings.Clone(t.Module),
	}
}

// isWrapper reports whether the text is for a frame that is not the program's.
func (p *parsedText) isWrapper() bool {
	if isRuntime(p.module) {
		return true
	}
	name := p.caller.Function
	if isWrapper(&lines.Frame{Function: name}) {
		return true
	}
	// The text of a function made from a template begins with its result type.
	name = qualified(name)
	space, _, ok := strings.Cut(name, "::")
	return ok && slices.Contains(runtimeSpaces, space) || isAllocator(name)
}

// qualified returns the name of a function from a demangled one, without its result type
// and parameters.
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
