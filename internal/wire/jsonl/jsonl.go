// Package jsonl contains the definitions that the reader and the writer of the
// jsonl format share: its name and version, its limits and the names of its
// enumerated values. docs/formats/jsonl.md describes the format.
package jsonl

// The first line of every file: {"format":"rtrace-jsonl","version":1}.
const (
	Format  = "rtrace-jsonl"
	Version = 1
)

// MaxLine is the length of the longest line that a reader accepts, in bytes
// without its line break.
const MaxLine = 16 << 20

// Clocks holds the values of a header's "clock", in the order of trace.Clock.
var Clocks = [...]string{"unknown", "monotonic", "day", "wall"}
