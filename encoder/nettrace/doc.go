// Package nettrace writes traces as nettrace streams, for PerfView and the other tools
// of .NET. docs/formats/nettrace-writer.md describes what is written.
//
// A stream holds a trace twice. The events of rtrace's own provider hold it whole;
// internal/wire/nettrace describes them. The events of Universal.System give other
// readers what they need to show stacks with names: the process, its mappings, and the
// functions of the frames.
package nettrace

import (
	"errors"
	"fmt"

	"rtrace-bpf/trace"
)

// The versions of the container.
const (
	V4 = 4 // what runtimes write and all readers read; for one process
	V6 = 6 // for several processes
)

// The views for which Options.View can prepare a stream.
const (
	ViewNone      = ""
	ViewAllocTick = "alloctick" // PerfView's views of .NET's memory
)

// Options are the options of a Writer. The zero value means V4 without a view.
type Options struct {
	Version int    // V4 (also 0) or V6
	View    string // ViewNone or ViewAllocTick
	// Symbols provides the functions of frames without names; it may be nil.
	Symbols Symbols
	// Processors is the number of processors of the traced machine; 0 if it is unknown.
	Processors int
}

// Symbols knows the mappings of the traced processes.
type Symbols interface {
	// Observe is called with records about mappings. Later calls of the other methods
	// are about the state after them.
	Observe(r *trace.Record)
	// Function returns the function with the call before a return address, or "" if it
	// is unknown.
	Function(pid int32, addr uint64) string
	// Bias returns the difference between the addresses of a mapping in memory and in
	// its file.
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

// Stats counts what was written and what was changed.
type Stats struct {
	Events     uint64 // of all providers
	Stacks     uint64 // written again after each sequence point
	Sequences  uint64 // sequence points
	Symbols    uint64 // names of functions for other readers
	CutStrings uint64 // texts that were longer than a block has room for
	// Foreign counts mappings and processes that version 4 leaves out for other
	// readers, because it is for one process.
	Foreign uint64
}

// Remarks describes what other readers or rtrace will miss, one line each.
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
