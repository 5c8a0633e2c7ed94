// Package jsonl holds what the reader and the writer of the jsonl format must
// agree on: its name and version, its limits and the names of its enumerated
// values. The format is described in docs/formats/jsonl.md.
package jsonl

// The first line of every file: {"format":"rtrace-jsonl","version":1}.
const (
	Format  = "rtrace-jsonl"
	Version = 1
)

// MaxLine is the longest line, in bytes without its end, that a reader takes.
const MaxLine = 16 << 20

// Clocks are the values of a header's "clock", in the order of trace.Clock.
var Clocks = [...]string{"unknown", "monotonic", "day", "wall"}
