// Package swap writes SWAP data messages: a stream that host tools of Tizen's
// Dynamic Analyzer read. docs/formats/swap.md describes the format and what of a
// trace has no place in it.
package swap

import "fmt"

// Dialect is whose layouts are written where the protocol document and real devices
// differ.
type Dialect uint8

// The dialects.
const (
	Document Dialect = iota // the newer text: command lines, a tid in PROCESS_STATUS_INFO
	Kernel                  // what devices sent: task names of 15 bytes, no tid
)

// ParseDialect returns the dialect with the given name; an empty one is Document.
func ParseDialect(name string) (Dialect, error) {
	switch name {
	case "", "document":
		return Document, nil
	case "kernel":
		return Kernel, nil
	}
	return 0, fmt.Errorf("unknown dialect %q of SWAP (known: document, kernel)", name)
}

// Options says what to write. The zero value is what the document says, with times
// as all public writers have them.
type Options struct {
	Dialect Dialect
	// Formula writes times nanoseconds first, as the newer text's formula has
	// it to the letter; no public writer does.
	Formula bool
	// NoStacks leaves out the private messages with whole stacks.
	NoStacks bool
}

// Stats counts what could not be written as it was.
type Stats struct {
	// Foreign is how many calls there were of resources that have no message.
	Foreign uint64
	// Strays is how many stacks there were of messages that are not in the trace.
	Strays uint64
	// CutGaps is how many losses were longer than a gap of the sequence can be, or
	// in front of the first message.
	CutGaps uint64
	// Long is how many messages were cut at the limit of a payload.
	Long uint64
}

// Remarks says in words what could not be written as it was.
func (s Stats) Remarks() (list []string) {
	add := func(n uint64, text string) {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(s.Foreign, "calls are of resources that have no message in swap, and are left out")
	add(s.Strays, "stacks belong to messages that are not there, and are left out")
	add(s.CutGaps, "losses are longer than a gap of the sequence can be, or stand in front of the first message")
	add(s.Long, "texts or lists were cut at the limit of a message")
	return list
}
