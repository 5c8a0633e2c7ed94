package nettrace

import (
	"math/bits"
	"strconv"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// Event is an event as it is in the stream, or a note that events are missing. What it
// points to is valid until the next one is read, except Meta, Thread and Labels.
type Event struct {
	wire.Head
	Meta    *wire.Metadata // nil if the stream does not describe the event
	Thread  *Thread        // the thread that the event is about
	Labels  *Labels        // of version 6; nil if there are none
	Payload []byte
	Stack   []uint64 // return addresses, innermost first
	// Activity and Related are ids of activities; nil if there are none.
	Activity, Related *[16]byte
	Offset            int64 // in the stream, bytes
	// Lost, if not 0, marks a note: this many events of Thread are missing, after Since
	// and before Time.
	Lost  uint64
	Since uint64
}

// Thread is a thread.
type Thread struct {
	Process uint64 // id
	ID      uint64
	Name    string
	Index   uint64 // of version 6
	Known   bool   // Process and ID are known, not just 0

	seq     uint32 // number of its last event
	slot    uint32 // in threadTable.all
	named   bool   // its name is in a record
	counted bool   // seq is known
	seen    uint64 // time of its last event
}

// Labels is a list of labels of version 6, with the values that replace those in the
// metadata.
type Labels struct {
	Activity, Related, TraceID *[16]byte
	SpanID                     uint64
	Others                     []Label
	Opcode, Level, Version     *uint8
	Keywords                   *uint64
}

// Label is a label with a name of its own.
type Label struct{ Key, Value string }

// Info is what the beginning of a stream contains.
type Info struct {
	Major, Minor uint32 // version; 4, 0 for versions 4 and 5
	// Time is when the clock had the time Sync, in UTC: year, month, day of the week,
	// day, hour, minute, second, millisecond.
	Time        [8]uint16
	Sync        uint64 // ticks of the clock
	Frequency   uint64 // ticks per second, not 0
	PointerSize int    // bytes, 4 or 8
	ProcessID   uint32 // 0 if unknown
	Processors  uint32
	Sampling    uint32 // as it is in the stream
	// Pairs are the keys and values of version 6, in order.
	Pairs []Label
}

// Nanoseconds returns the time of a number of ticks, in nanoseconds of the clock.
func (i *Info) Nanoseconds(ticks uint64) int64 {
	const second = 1_000_000_000
	if i.Frequency == second {
		return int64(ticks)
	}
	negative := int64(ticks) < 0
	if negative {
		ticks = -ticks
	}
	high, low := bits.Mul64(ticks, second)
	if high >= i.Frequency {
		return 1<<63 - 1 // later than any time
	}
	ns, _ := bits.Div64(high, low, i.Frequency)
	if ns > 1<<63-1 {
		ns = 1<<63 - 1
	}
	if negative {
		return -int64(ns)
	}
	return int64(ns)
}

func appendInt(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) }
