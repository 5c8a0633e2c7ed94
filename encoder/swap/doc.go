// Package swap writes SWAP data messages: a stream for the host tools of Tizen's
// Dynamic Analyzer. docs/formats/swap.md describes the format and what it cannot hold.
package swap

import "fmt"

// Dialect selects the layouts where the protocol document and real devices differ.
type Dialect uint8

// The dialects.
const (
	Document Dialect = iota // the newer text: command lines, a tid in PROCESS_STATUS_INFO
	Kernel                  // what devices sent: task names of 15 bytes, no tid
)

// ParseDialect returns the dialect with the given name. An empty name means Document.
func ParseDialect(name string) (Dialect, error) {
	switch name {
	case "", "document":
		return Document, nil
	case "kernel":
		return Kernel, nil
	}
	return 0, fmt.Errorf("unknown dialect %q of SWAP (known: document, kernel)", name)
}

// Options are the options of a Writer. The zero value follows the document, with times
// as all public writers have them.
type Options struct {
	Dialect Dialect
	// Formula writes nanoseconds before seconds, as the formula in the newer text
	// literally has it. No public writer does.
	Formula bool
	// NoStacks leaves out the private messages with whole stacks.
	NoStacks bool
}

// Stats counts what could not be written unchanged.
type Stats struct {
	// Foreign counts calls of resources that have no message.
	Foreign uint64
	// Strays counts stacks whose messages are not in the trace.
	Strays uint64
	// CutGaps counts losses that are longer than a gap in the sequence numbers can be,
	// or before the first message.
	CutGaps uint64
	// Long counts messages that were cut to the limit of a payload.
	Long uint64
}

// Remarks describes what could not be written unchanged, one line each.
func (s Stats) Remarks() (list []string) {
	add := func(n uint64, text string) {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(s.Foreign, "calls are of resources that have no message in swap, and are left out")
	add(s.Strays, "stacks belong to messages that are not there, and are left out")
	add(s.CutGaps, "losses are longer than a gap of the sequence can be, or come before the first message")
	add(s.Long, "texts or lists were cut at the limit of a message")
	return list
}
