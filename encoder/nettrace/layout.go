package nettrace

import (
	"encoding/binary"
	"time"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// layout is what differs between the versions of the container.
type layout interface {
	// head begins a stream.
	head(dst []byte, s *start) []byte
	// block adds a block of a head and a body to what follows written bytes.
	block(dst []byte, written uint64, kind wire.BlockKind, head, body []byte) []byte
	// metadataHead is the head of blocks of metadata.
	metadataHead() []byte
	// metadata adds the description of events to a block of such.
	metadata(dst []byte, m *wire.Metadata) []byte
	// sequencePoint is the body of such a block.
	sequencePoint(time, thread uint64, seq uint32) []byte
	// end ends a stream.
	end(dst []byte) []byte
}

// start is what the beginning of a stream tells.
type start struct {
	date       [8]uint16 // year, month, day of the week, day, hour, minute, second, millisecond; UTC
	sync       uint64    // the time of the clock at date, ns
	pointer    int       // bytes
	pid        uint32
	processors int
}

const (
	frequency = 1e9 // ticks of the clock a second
	// sampling is what the runtime writes for the time between samples, ns.
	sampling = 1000000
	// mostProcessors stands for a number that is not known: readers make
	// tables by it, and the reference reader tells no more of them apart.
	mostProcessors = 256
)

// start returns what the beginning says of a trace with the header h.
func (e *Writer) start(h *trace.Header) *start {
	const ms = int64(time.Millisecond)
	// Dates have milliseconds: the clock makes up for the rest.
	rest := (h.WallTime%ms + ms) % ms
	t := time.Unix(0, h.WallTime-rest).UTC()
	s := &start{
		date: [8]uint16{
			uint16(t.Year()), uint16(t.Month()), uint16(t.Weekday()), uint16(t.Day()),
			uint16(t.Hour()), uint16(t.Minute()), uint16(t.Second()), uint16(t.Nanosecond() / int(ms)),
		},
		sync: uint64(h.ClockTime - rest), pointer: e.pointer, pid: uint32(e.pid), processors: e.opts.Processors,
	}
	if s.processors == 0 {
		s.processors = mostProcessors
	}
	return s
}

// appendClock adds what both versions have first.
func (s *start) appendClock(dst []byte) []byte {
	for _, v := range s.date {
		dst = binary.LittleEndian.AppendUint16(dst, v)
	}
	dst = binary.LittleEndian.AppendUint64(dst, s.sync)
	dst = binary.LittleEndian.AppendUint64(dst, frequency)
	return binary.LittleEndian.AppendUint32(dst, uint32(s.pointer))
}
