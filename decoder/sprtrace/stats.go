package sprtrace

import (
	"fmt"
	"strings"
)

// Stats counts what a Reader has read.
type Stats struct {
	// Dialect describes the part of the trace since the last handshake: "2.0", "1.4
	// size first", "1.4 document, exact strings".
	Dialect    string
	Bytes      int64  // of whole packets
	Packets    uint64 // including handshakes
	Calls      uint64
	Handshakes uint64
	Unknown    uint64 // packets of an unknown type
	Malformed  uint64 // packets that do not parse, and calls of unknown type
	Orphans    uint64 // BTRC and ARGS that belong to no call
}

// maxWarnings bounds what Warnings keeps.
const maxWarnings = 32

// findings is what a Reader has found so far.
type findings struct {
	stats    Stats
	warnings []string
}

// Stats returns the counters so far.
func (d *Reader) Stats() Stats {
	s := d.stats
	s.Bytes = d.w.src.Offset()
	s.Dialect = d.dialect()
	return s
}

// Warnings returns what the original post-processor prints to stderr, without its
// "WARNING: ", and oddities of the whole trace: at most 32 lines.
func (f *findings) Warnings() []string { return f.warnings }

func (f *findings) warn(format string, args ...any) {
	if len(f.warnings) < maxWarnings {
		f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
	}
}

func (d *Reader) dialect() string {
	w := &d.w
	if w.order.Pointer == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d.%d", w.hs.Version.Major(), w.hs.Version.Minor())
	switch {
	case w.documentFraming():
		b.WriteString(" document")
	case w.sizeFirst:
		b.WriteString(" size first")
	}
	var marks []string
	if w.callOrder > 0 && !w.documentFraming() {
		marks = append(marks, "document calls")
	}
	if w.callOrder == 0 && w.documentFraming() {
		marks = append(marks, "real calls")
	}
	if w.exactText {
		marks = append(marks, "exact strings")
	}
	if w.order.Big {
		marks = append(marks, "big-endian")
	}
	if w.order.Pointer == 4 {
		marks = append(marks, "32-bit")
	}
	for _, m := range marks {
		b.WriteString(", ")
		b.WriteString(m)
	}
	return b.String()
}
