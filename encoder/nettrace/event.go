package nettrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// eventBlock is the block of events that is being made.
type eventBlock struct {
	data  []byte
	prev  wire.Head // of the event before; zero at the start
	first uint64    // time of the first event
	since int       // bytes of the blocks since the last sequence point
}

// reset begins another block.
func (b *eventBlock) reset() {
	b.since += len(b.data)
	b.data, b.prev = b.data[:0], wire.Head{}
}

// head returns the header of the block.
func (b *eventBlock) head() []byte { return blockHead(b.first, b.prev.Time) }

// blockHead returns the header of blocks of events and, in version 4, of metadata.
func blockHead(first, last uint64) []byte {
	h := make([]byte, 0, wire.HeaderSize)
	h = binary.LittleEndian.AppendUint16(h, wire.HeaderSize)
	h = binary.LittleEndian.AppendUint16(h, wire.FlagCompressed)
	h = binary.LittleEndian.AppendUint64(h, first)
	return binary.LittleEndian.AppendUint64(h, last)
}

// append appends an event. It leaves out what is the same as in the event before.
func (b *eventBlock) append(h *wire.Head, payload []byte) {
	if len(b.data) == 0 {
		b.first = h.Time
	}
	p := &b.prev
	h.Size = uint32(len(payload))
	flags := byte(wire.FlagSorted)
	at := len(b.data)
	data := append(b.data, 0)
	if h.Metadata != p.Metadata {
		flags |= wire.FlagMetadata
		data = binary.AppendUvarint(data, uint64(h.Metadata))
	}
	if h.Sequence != p.Sequence+1 || h.Capture != p.Capture || h.Processor != p.Processor {
		flags |= wire.FlagCapture
		data = binary.AppendUvarint(data, uint64(h.Sequence-p.Sequence-1))
		data = binary.AppendUvarint(data, h.Capture)
		data = binary.AppendUvarint(data, uint64(h.Processor))
	}
	if h.Thread != p.Thread {
		flags |= wire.FlagThread
		data = binary.AppendUvarint(data, h.Thread)
	}
	if h.Stack != p.Stack {
		flags |= wire.FlagStack
		data = binary.AppendUvarint(data, uint64(h.Stack))
	}
	data = binary.AppendUvarint(data, h.Time-p.Time)
	if h.Size != p.Size {
		flags |= wire.FlagPayload
		data = binary.AppendUvarint(data, uint64(h.Size))
	}
	data[at] = flags
	b.data = append(data, payload...)
	*p = *h
}

// write writes an event with the payload e.payload and the time e.time. gap is how
// many event numbers are skipped.
func (e *Writer) write(metadata uint32, gap uint32) {
	e.head.Sequence += gap + 1
	e.head.Metadata, e.head.Capture = metadata, e.threads.capture
	e.head.Time = uint64(e.time)
	e.events.append(&e.head, e.payload.data)
	e.stats.Events++
	if len(e.events.data) >= blockAt || len(e.stacks.data) >= blockAt || len(e.defined.data) >= blockAt {
		e.flush()
	}
}

// place sets the thread, the processor and the stack in the header of the next event.
func (e *Writer) place(pid, tid, cpu int32, stack uint32) {
	e.head.Thread = e.threads.number(pid, tid)
	e.head.Processor = wire.OwnNoProcessor
	if cpu > 0 {
		e.head.Processor = uint32(cpu - 1)
	}
	e.head.Stack = stack
}
