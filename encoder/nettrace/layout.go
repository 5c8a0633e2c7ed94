package nettrace

import (
	"encoding/binary"
	"time"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// layout is what differs between the versions of the container.
type layout interface {
	// head appends the beginning of a stream.
	head(dst []byte, s *start) []byte
	// block appends a block with a header and a body, at offset written+len(dst).
	block(dst []byte, written uint64, kind wire.BlockKind, head, body []byte) []byte
	// metadataHead returns the header of blocks of metadata.
	metadataHead() []byte
	// metadata appends a description of events for a block of metadata.
	metadata(dst []byte, m *wire.Metadata) []byte
	// sequencePoint returns the body of a block with a sequence point.
	sequencePoint(time, thread uint64, seq uint32) []byte
	// end appends the end of a stream.
	end(dst []byte) []byte
}

// start holds the contents of the beginning of a stream.
type start struct {
	date       [8]uint16 // year, month, day of the week, day, hour, minute, second, millisecond; UTC
	sync       uint64    // the clock's time at date, ns
	pointer    int       // bytes
	pid        uint32
	processors int
}

const (
	frequency = 1e9 // ticks of the clock per second
	// sampling is the time between samples that the runtime writes, ns.
	sampling = 1000000
	// mostProcessors is written for an unknown number. Readers size tables by it, and
	// the reference reader does not distinguish more processors.
	mostProcessors = 256
)

// newStart returns the beginning of a stream of a process for a trace with the header h.
func newStart(h *trace.Header, p process, processors int) *start {
	const ms = int64(time.Millisecond)
	// Dates have milliseconds: the rest is subtracted from the clock.
	rest := (h.WallTime%ms + ms) % ms
	t := time.Unix(0, h.WallTime-rest).UTC()
	s := &start{
		date: [8]uint16{
			uint16(t.Year()), uint16(t.Month()), uint16(t.Weekday()), uint16(t.Day()),
			uint16(t.Hour()), uint16(t.Minute()), uint16(t.Second()), uint16(t.Nanosecond() / int(ms)),
		},
		sync: uint64(h.ClockTime - rest), pointer: p.pointer, pid: uint32(p.pid), processors: processors,
	}
	if s.processors == 0 {
		s.processors = mostProcessors
	}
	return s
}

// appendClock appends the fields that both versions have first.
func (s *start) appendClock(dst []byte) []byte {
	for _, v := range s.date {
		dst = binary.LittleEndian.AppendUint16(dst, v)
	}
	dst = binary.LittleEndian.AppendUint64(dst, s.sync)
	dst = binary.LittleEndian.AppendUint64(dst, frequency)
	return binary.LittleEndian.AppendUint32(dst, uint32(s.pointer))
}
