// Package sprtrace writes the binary trace format of sp-rtrace, for the last original
// tools, or in the dialect of the protocol document. docs/formats/sprtrace.md describes
// the format and lists what it cannot hold.
package sprtrace

import (
	"fmt"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// Dialect is a variant of the format.
type Dialect uint8

// The dialects.
const (
	// Wire is protocol 2.0 as the last original tools write and read it.
	Wire Dialect = iota
	// Document is version 1.4 exactly as the protocol document specifies it. The
	// original tools misread it.
	Document
)

// Options are the options of a Writer. The zero value is what the original tools read
// best.
type Options struct {
	Dialect Dialect
	// BacktraceAll writes the stack of an OpMove with both of its calls; by
	// default the free has none. The stack of an OpFree is always written.
	BacktraceAll bool
	// KeepOpaque writes opaque records of the format back unchanged. The original tools
	// stop at a packet that they do not know, so this is for traces on their way to a
	// reader that knows it.
	KeepOpaque bool
}

func (o *Options) check() error {
	if o.Dialect > Document {
		return fmt.Errorf("sp-rtrace: unknown dialect %d", o.Dialect)
	}
	return nil
}

// Stats counts what was written and what did not fit.
type Stats struct {
	Packets    uint64
	Calls      uint64 // CALL packets
	Bytes      int64
	CutStacks  uint64 // stacks with more frames than the 253 that a packet can hold
	CutFrames  uint64 // their frames beyond that
	CutStrings uint64 // strings that were shortened
	CutArgs    uint64 // arguments left out because their packet was full
	Clamped    uint64 // sizes and counts above 2^31-1, and resource ids above 32
	Dropped    uint64 // records that the format has no place for
}

// CallPackets returns how many CALL packets a call becomes: two for OpMove, none for an
// unknown operation. Positions in a side file count them.
func CallPackets(c *trace.Call) int {
	switch c.Op {
	case trace.OpMove:
		return 2
	case trace.OpNone, trace.OpAlloc, trace.OpFree:
		return 1
	}
	return 0
}

// Values for records for which the trace has no header.
const (
	defaultArch   = "x86_64"
	defaultArch32 = "i686"
)

const format = wire.Format
