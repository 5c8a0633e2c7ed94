package resolve

import (
	"strings"

	"rtrace-bpf/internal/frametext"
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
