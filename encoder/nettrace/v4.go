package nettrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// v4 is version 4 of the container.
type v4 struct{}

var objects = map[wire.BlockKind]string{
	wire.BlockEvent: wire.ObjectEvent, wire.BlockMetadata: wire.ObjectMetadata,
	wire.BlockStack: wire.ObjectStack, wire.BlockSequence: wire.ObjectSequence,
}

func (v4) head(dst []byte, s *start) []byte {
	dst = append(dst, wire.Magic...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(wire.Serializer)))
	dst = append(dst, wire.Serializer...)
	dst = appendObject(dst, wire.ObjectTrace, wire.VersionTrace)
	dst = s.appendClock(dst)
	dst = binary.LittleEndian.AppendUint32(dst, s.pid)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.processors))
	dst = binary.LittleEndian.AppendUint32(dst, sampling)
	return append(dst, wire.TagEndObject)
}

// appendObject begins an object.
func appendObject(dst []byte, name string, version uint32) []byte {
	dst = append(dst, wire.TagBeginPrivate, wire.TagBeginPrivate, wire.TagNull)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(name)))
	dst = append(dst, name...)
	return append(dst, wire.TagEndObject)
}

func (v4) block(dst []byte, written uint64, kind wire.BlockKind, head, body []byte) []byte {
	dst = appendObject(dst, objects[kind], wire.VersionBlock)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(head)+len(body)))
	for (written+uint64(len(dst)))%wire.Align != 0 {
		dst = append(dst, 0)
	}
	dst = append(dst, head...)
	dst = append(dst, body...)
	return append(dst, wire.TagEndObject)
}

func (v4) metadataHead() []byte { return blockHead(0, 0) }

// metadata appends the payload of an event with the metadata id 0.
func (v4) metadata(dst []byte, m *wire.Metadata) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint32(b, m.ID)
	b = appendUTF16(b, m.Provider)
	b = binary.LittleEndian.AppendUint32(b, m.EventID)
	b = appendUTF16(b, m.Name)
	b = binary.LittleEndian.AppendUint64(b, m.Keywords)
	b = binary.LittleEndian.AppendUint32(b, m.Version)
	b = binary.LittleEndian.AppendUint32(b, m.Level)
	if m.Provider == wire.ProviderSystem { // its types do not exist in this version
		b = binary.LittleEndian.AppendUint32(b, 0)
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Fields)))
		for i := range m.Fields {
			b = binary.LittleEndian.AppendUint32(b, uint32(m.Fields[i].Type))
			b = appendUTF16(b, m.Fields[i].Name)
		}
	}
	dst = append(dst, wire.FlagPayload, 0)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func (v4) sequencePoint(time, thread uint64, seq uint32) []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint64(b, time)
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.LittleEndian.AppendUint64(b, thread)
	return binary.LittleEndian.AppendUint32(b, seq)
}

func (v4) end(dst []byte) []byte { return append(dst, wire.TagNull) }
