package mtrc

import (
	"fmt"

	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// Stats counts what a Writer did with records. Nothing in it is an error.
type Stats struct {
	IndexStats
	LegacyStats
	CutNames uint64 // names cut to wire.MaxName bytes or at a NUL
	// Wide counts events with numbers of 2^32 and more after a header with words of 4
	// bytes.
	Wide uint64
}

// Remarks describes what was not written unchanged, one line each.
func (s Stats) Remarks() []string {
	var lines []string
	say := func(n uint64, text string) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf(text, n))
		}
	}
	say(s.Unmatched, "%d frees of blocks that were not seen allocated are left out")
	say(s.Adopted, "%d moves of blocks that were not seen allocated are written as allocations")
	say(s.Replaced, "%d frees are missing in the trace and added, since something else was allocated there")
	say(s.Renumbered, "%d blocks have another index, since theirs was in use or too high")
	say(s.Foreign, "%d calls are left out that are of another resource than "+wire.Resource+" or of no known kind")
	say(s.CutNames, "%d times a name was cut")
	say(s.Wide, "%d events have numbers of 2^32 and more, which a 32-bit mptrace reads wrongly")
	say(s.ClampedSizes, "%d sizes of 2 GiB and more are written as 2 GiB less a byte")
	say(s.ClampedLines, "%d lines from 2^31 on are written as 2^31 less one")
	say(s.FoldedThreads, "%d events have a thread id that was folded into 31 bits")
	say(s.Shared, "%d blocks may overlap with others, since the live ones spread over more than 2 GiB")
	return lines
}

// Positions returns a function that reports how many events of blocks a record becomes,
// that is, how many calls a reader of the file will deliver for it. Call it with every
// record of a trace, in order.
func Positions() func(*trace.Record) int {
	x := NewIndexer()
	return func(r *trace.Record) int {
		switch r.Kind {
		case trace.KindHeader, trace.KindEnd:
			x.Reset()
		case trace.KindHeapGrow:
		default:
			return len(x.Events(r))
		}
		return 0
	}
}
