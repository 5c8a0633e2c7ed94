// Package nettrace writes traces as nettrace streams, which PerfView and the other
// tools of .NET read. docs/formats/nettrace-writer.md describes what is written.
//
// A stream holds a trace twice. The events of our own provider hold it whole:
// internal/wire/nettrace says how. Those of Universal.System tell other readers
// what they need to show stacks with names: the process, its mappings, and the
// functions that the frames are in.
package nettrace

import (
	"errors"
	"fmt"

	"rtrace-bpf/trace"
)

// The versions of the container.
const (
	V4 = 4 // what runtimes stream and all readers read; of one process
	V6 = 6 // for more than one process
)

// The views that a stream can be prepared for besides, by Options.View.
const (
	ViewNone      = ""
	ViewAllocTick = "alloctick" // PerfView's views of the memory of .NET
)

// Options are the choices of a Writer. The zero value is V4 with nothing besides.
type Options struct {
	Version int    // V4 (also 0) or V6
	View    string // ViewNone or ViewAllocTick
	// Symbols gives the functions of frames that come without names; nil for
	// none.
	Symbols Symbols
	// Processors is how many the traced machine has; 0 if that is not known.
	Processors int
}

// Symbols knows what is mapped in the traced processes.
type Symbols interface {
	// Observe takes in what a record says about mappings. What is asked
	// later is meant behind it.
	Observe(r *trace.Record)
	// Function returns the function that was called from before a return
	// address; empty if that is not known.
	Function(pid int32, addr uint64) string
	// Bias returns what is added to the addresses of a mapping's file to
	// have those in memory.
	Bias(m *trace.Mapping) (bias uint64, ok bool)
}

func (o *Options) check() error {
	switch o.Version {
	case 0:
		o.Version = V4
	case V4, V6:
	default:
		return fmt.Errorf("nettrace: version %d is not written, only 4 and 6", o.Version)
	}
	if o.View != ViewNone && o.View != ViewAllocTick {
		return fmt.Errorf("nettrace: unknown view %q (known: %s)", o.View, ViewAllocTick)
	}
	if o.Processors < 0 {
		return errors.New("nettrace: the number of processors is negative")
	}
	return nil
}

// Stats counts what was written, and what was not as it was.
type Stats struct {
	Events     uint64 // of all providers
	Stacks     uint64 // again behind each sequence point
	Sequences  uint64 // sequence points
	Symbols    uint64 // names of functions for other readers
	CutStrings uint64 // texts longer than a block has room for
	// Foreign is how many mappings and processes other readers are not told of,
	// since version 4 is of one process.
	Foreign uint64
}

// Remarks says in words what other readers or ours will miss, one line each.
func (s Stats) Remarks() []string {
	var all []string
	if s.CutStrings > 0 {
		all = append(all, fmt.Sprintf("%d texts were cut: nettrace has no room for them", s.CutStrings))
	}
	if s.Foreign > 0 {
		all = append(all, "version 4 of nettrace names the functions of one process only for other readers; version 6 has room for more")
	}
	return all
}
