// Package sidefile writes and reads the information that a trace's own format
// cannot represent: the file OUT.side next to a trace OUT, described in
// docs/formats/side.md.
//
// Call positions connect the two files: position n is the place before the call
// that the trace's decoder returns after n others. A realloc takes two
// positions in a format that writes it as a free and an allocation.
package sidefile

import (
	"strings"

	"rtrace-bpf/trace"
)

// The first line: {"format":"rtrace-side","version":1}.
const (
	formatName = "rtrace-side"
	version    = 1
)

const (
	// bigSize is the first size that sp-rtrace cannot represent. Sizes from it
	// on are in the side file.
	bigSize = 1 << 31
	// chunkBytes is the size from which the writer writes a chunk.
	chunkBytes = 64 << 10
	// maxLine and maxQueue bound the memory of the reader.
	maxLine  = 4 << 20
	maxQueue = 1 << 16
)

// held reports whether records of kind k go into the side file.
func held(k trace.Kind) bool {
	switch k {
	case trace.KindHeader, trace.KindProcess, trace.KindThread, trace.KindModule, trace.KindMapping,
		trace.KindUnmapping, trace.KindFunction, trace.KindResource, trace.KindExec, trace.KindExit, trace.KindHeapGrow, trace.KindLost, trace.KindRSS, trace.KindWindow, trace.KindCost, trace.KindEnd:
		return true
	}
	return false
}

// quality describes how a stack ended.
type quality struct {
	end    trace.StackEnd
	fp     bool
	bare   bool // applies to calls without frames instead of those with frames
	reason string
}

func qualityOf(s *trace.Stack) quality {
	return quality{
		end: s.End, fp: s.FramePointer, reason: s.Reason,
		bare: len(s.Frames) == 0 && s.End != trace.StackAbsent,
	}
}

// appendText appends q as END[+fp][+bare][:REASON].
func (q quality) appendText(b []byte) []byte {
	b = append(b, q.end.String()...)
	if q.fp {
		b = append(b, "+fp"...)
	}
	if q.bare {
		b = append(b, "+bare"...)
	}
	if q.reason != "" {
		b = append(b, ':')
		b = append(b, q.reason...)
	}
	return b
}

func parseQuality(s string) (q quality, ok bool) {
	s, q.reason, _ = strings.Cut(s, ":")
	s, q.bare = strings.CutSuffix(s, "+bare")
	s, q.fp = strings.CutSuffix(s, "+fp")
	q.end, ok = trace.ParseStackEnd(s)
	return q, ok
}
