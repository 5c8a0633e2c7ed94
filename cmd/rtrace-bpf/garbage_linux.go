package main

import (
	"os"
	"runtime/debug"
)

// garbage is the garbage that may collect while the live blocks are summed up, in per cent
// of what is in use, unless GOGC is set: docs/performance.md has the memory that this takes.
const garbage = 25

// limitGarbage sets the limit, for top, snapshots and the verdicts of the summary.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}
