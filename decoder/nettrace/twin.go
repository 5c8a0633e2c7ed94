package nettrace

import (
	"encoding/binary"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/nettrace"
)

// Words of the lines of a dump.
const (
	wordTrace    = "TRACE"
	wordBlock    = "BLOCK"
	wordMetadata = "METADATA"
	wordStack    = "STACK"
	wordEvent    = "EVENT"
	wordSequence = "SEQUENCE"
	wordThread   = "THREAD"
	wordRemove   = "REMOVE"
	wordLabels   = "LABELS"
	wordBytes    = "BYTES" // of a block
	wordCut      = "CUT"
	wordEnd      = "END"
)

// The functions below append the bytes that lines describe. Dump compares them with the
// bytes in the stream. Where they differ, the line has the bytes, too.

// appendTrace appends the beginning of a stream, in version 4 up to the tag after it.
func appendTrace(b []byte, i *Info) []byte {
	b = append(b, wire.Magic...)
	le := binary.LittleEndian
	if i.Major < wire.MajorV6 {
		b = le.AppendUint32(b, uint32(len(wire.Serializer)))
		b = append(b, wire.Serializer...)
		b = appendObjectHead(b, wire.ObjectTrace, wire.VersionTrace)
		b = appendClock(b, i)
		for _, v := range []uint32{uint32(i.PointerSize), i.ProcessID, i.Processors, i.Sampling} {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	for _, v := range []uint32{0, i.Major, i.Minor} {
		b = le.AppendUint32(b, v)
	}
	payload := appendClock(nil, i)
	payload = le.AppendUint32(payload, uint32(i.PointerSize))
	payload = le.AppendUint32(payload, uint32(len(i.Pairs)))
	for _, p := range i.Pairs {
		for _, s := range []string{p.Key, p.Value} {
			payload = append(binio.AppendUleb128(payload, uint64(len(s))), s...)
		}
	}
	return append(appendBlockWord(b, wire.BlockTrace, len(payload)), payload...)
}

func appendClock(b []byte, i *Info) []byte {
	for _, v := range i.Time {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, i.Sync)
	return binary.LittleEndian.AppendUint64(b, i.Frequency)
}

func appendObjectHead(b []byte, name string, version uint32) []byte {
	b = append(b, wire.TagBeginPrivate, wire.TagBeginPrivate, wire.TagNull)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	return append(append(b, name...), wire.TagEndObject)
}

func appendBlockWord(b []byte, kind wire.BlockKind, size int) []byte {
	return binary.LittleEndian.AppendUint32(b, uint32(kind)<<24|uint32(size))
}

// appendBlock appends everything before the payload of a block at the given offset.
func appendBlock(b []byte, offset int64, v6 bool, kind wire.BlockKind, size int) []byte {
	if v6 {
		return appendBlockWord(b, kind, size)
	}
	start := len(b)
	for name, k := range kindsV4 {
		if k == kind {
			b = appendObjectHead(b, name, wire.VersionBlock)
		}
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	for (offset+int64(len(b)-start))%wire.Align != 0 {
		b = append(b, 0)
	}
	return b
}

// blockHead is the header at the start of a payload.
type blockHead struct {
	flags        uint32 // of events and sequence points
	lowest, high uint64 // times of events
	first, count uint32 // of stacks and labels; count is also the number of threads of a sequence point
	time         uint64 // of a sequence point
}

// blockFields returns the fields in the header of a block of a kind, in order: name,
// size in bytes and value.
func blockFields(v6 bool, kind wire.BlockKind, h *blockHead) []blockField {
	switch {
	case kind == wire.BlockEvent, kind == wire.BlockMetadata && !v6:
		return []blockField{{"flags", 2, nil, &h.flags}, {"first", 8, &h.lowest, nil}, {"last", 8, &h.high, nil}}
	case kind == wire.BlockStack, kind == wire.BlockLabels:
		return []blockField{{"first", 4, nil, &h.first}, {"count", 4, nil, &h.count}}
	case kind == wire.BlockSequence && v6:
		return []blockField{{"time", 8, &h.time, nil}, {"flags", 4, nil, &h.flags}, {"count", 4, nil, &h.count}}
	case kind == wire.BlockSequence:
		return []blockField{{"time", 8, &h.time, nil}, {"count", 4, nil, &h.count}}
	}
	return nil
}

type blockField struct {
	name  string
	size  int
	wide  *uint64
	short *uint32
}

func (f *blockField) set(v uint64) {
	if f.wide != nil {
		*f.wide = v
	} else {
		*f.short = uint32(v)
	}
}

func (f *blockField) get() uint64 {
	if f.wide != nil {
		return *f.wide
	}
	return uint64(*f.short)
}

// withSize reports whether the header of a block of a kind begins with its size.
func withSize(kind wire.BlockKind) bool {
	return kind == wire.BlockEvent || kind == wire.BlockMetadata
}

// appendBlockHead appends the header of a block.
func appendBlockHead(b []byte, v6 bool, kind wire.BlockKind, h *blockHead) []byte {
	fields := blockFields(v6, kind, h)
	if withSize(kind) {
		size := 0
		if fields != nil {
			size = wire.HeaderSize
		}
		b = binary.LittleEndian.AppendUint16(b, uint16(size))
	}
	for _, f := range fields {
		var room [8]byte
		binary.LittleEndian.PutUint64(room[:], f.get())
		b = append(b, room[:f.size]...)
	}
	return b
}

// readBlockHead reads the header of a block and returns its size, or 0 if it is not
// whole.
func readBlockHead(payload []byte, v6 bool, kind wire.BlockKind, h *blockHead) int {
	c := cursor{b: payload}
	size := -1
	if withSize(kind) {
		size = int(c.u16())
		if !v6 || kind == wire.BlockEvent {
			if size < wire.HeaderSize {
				return 0
			}
		} else {
			size += 2
		}
	}
	for _, f := range blockFields(v6, kind, h) {
		var room [8]byte
		copy(room[:], c.bytes(f.size))
		f.set(binary.LittleEndian.Uint64(room[:]))
	}
	if size >= 0 {
		c.bytes(size - c.i)
	}
	if c.err != nil {
		return 0
	}
	return c.i
}

// twinEvent is an event with those parts of its header that are in its line.
type twinEvent struct {
	wire.Head
	flags             uint8
	activity, related [16]byte
}

// appendEvent appends an event without its payload. before is the event before it in
// the block. What differs between the two is written, whatever the flags say.
func appendEvent(b []byte, v6, compressed bool, e, before *twinEvent) []byte {
	if !compressed {
		return appendPlain(b, v6, e)
	}
	next := before.Sequence
	if e.Metadata != 0 {
		next++
	}
	flags := e.flags &^ wire.FlagSorted
	for _, f := range []struct {
		flag uint8
		set  bool
	}{
		{wire.FlagMetadata, e.Metadata != before.Metadata},
		{wire.FlagCapture, e.Sequence != next || e.Capture != before.Capture || e.Processor != before.Processor},
		{wire.FlagThread, e.Thread != before.Thread},
		{wire.FlagStack, e.Stack != before.Stack},
		{wire.FlagPayload, e.Size != before.Size},
		{wire.FlagSorted, e.Sorted},
		{wire.FlagActivity, v6 && e.Labels != before.Labels || e.activity != before.activity},
		{wire.FlagRelated, e.related != before.related},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	b = append(b, flags)
	number := func(flag uint8, values ...uint64) {
		if flags&flag != 0 {
			for _, v := range values {
				b = binio.AppendUleb128(b, v)
			}
		}
	}
	number(wire.FlagMetadata, uint64(e.Metadata))
	number(wire.FlagCapture, uint64(e.Sequence-before.Sequence-1), e.Capture, uint64(e.Processor))
	number(wire.FlagThread, e.Thread)
	number(wire.FlagStack, uint64(e.Stack))
	b = binio.AppendUleb128(b, e.Time-before.Time)
	if v6 {
		number(wire.FlagActivity, uint64(e.Labels))
	} else {
		if flags&wire.FlagActivity != 0 {
			b = append(b, e.activity[:]...)
		}
		if flags&wire.FlagRelated != 0 {
			b = append(b, e.related[:]...)
		}
	}
	number(wire.FlagPayload, uint64(e.Size))
	return b
}

func appendPlain(b []byte, v6 bool, e *twinEvent) []byte {
	le := binary.LittleEndian
	size, id := uint32(wire.PlainV4), e.Metadata
	if v6 {
		size = wire.PlainV6
	}
	if !e.Sorted {
		id |= wire.Unsorted
	}
	for _, v := range []uint32{size + e.Size, id, e.Sequence} {
		b = le.AppendUint32(b, v)
	}
	b = le.AppendUint64(le.AppendUint64(b, e.Thread), e.Capture)
	b = le.AppendUint64(le.AppendUint32(le.AppendUint32(b, e.Processor), e.Stack), e.Time)
	if v6 {
		b = le.AppendUint32(b, e.Labels)
	} else {
		b = append(append(b, e.activity[:]...), e.related[:]...)
	}
	return le.AppendUint32(b, e.Size)
}

// appendStack appends a stack.
func appendStack(b []byte, size int, frames []uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(size*len(frames)))
	for _, f := range frames {
		if size == 4 {
			b = binary.LittleEndian.AppendUint32(b, uint32(f))
		} else {
			b = binary.LittleEndian.AppendUint64(b, f)
		}
	}
	return b
}

// appendLast appends the number of the last event of a thread.
func appendLast(b []byte, v6 bool, id uint64, seq uint32) []byte {
	if v6 {
		return binio.AppendUleb128(binio.AppendUleb128(b, id), uint64(seq))
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, id), seq)
}
