package nettrace

import (
	"encoding/binary"
	"strconv"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// v6 is version 6 of the container.
type v6 struct{}

func (v6) head(dst []byte, s *start) []byte {
	dst = append(dst, wire.Magic...)
	for _, v := range [3]uint32{0, wire.MajorV6, 0} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	b := s.appendClock(nil)
	keys := [][2]string{
		{wire.KeyProcessors, strconv.Itoa(s.processors)},
		{wire.KeyProcessID, strconv.FormatUint(uint64(s.pid), 10)},
		{wire.KeySampling, strconv.Itoa(sampling)},
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(keys)))
	for _, k := range keys {
		b = appendUTF8(appendUTF8(b, k[0]), k[1])
	}
	return v6{}.block(dst, 0, wire.BlockTrace, nil, b)
}

func (v6) block(dst []byte, _ uint64, kind wire.BlockKind, head, body []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(head)+len(body))|uint32(kind)<<24)
	dst = append(dst, head...)
	return append(dst, body...)
}

// metadataHead returns the size of the fields before the rows: there are none.
func (v6) metadataHead() []byte { return []byte{0, 0} }

// metadata appends a row.
func (v6) metadata(dst []byte, m *wire.Metadata) []byte {
	b := binary.AppendUvarint(nil, uint64(m.ID))
	b = appendUTF8(b, m.Provider)
	b = binary.AppendUvarint(b, uint64(m.EventID))
	b = appendUTF8(b, m.Name)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.Fields)))
	for i := range m.Fields {
		f := appendUTF8(nil, m.Fields[i].Name)
		f = append(f, byte(m.Fields[i].Type))
		if element := m.Fields[i].Element; element != nil {
			f = append(f, byte(element.Type))
		}
		b = appendSized(b, f)
	}
	var o []byte
	if m.Keywords != 0 {
		o = binary.LittleEndian.AppendUint64(append(o, wire.MetaKeywords), m.Keywords)
	}
	o = append(o, wire.MetaLevel, byte(m.Level), wire.MetaVersion, byte(m.Version))
	return appendSized(dst, appendSized(b, o))
}

func (v6) sequencePoint(time, thread uint64, seq uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, time)
	b = binary.LittleEndian.AppendUint32(b, 0) // threads and metadata stay
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = binary.AppendUvarint(b, thread)
	return binary.AppendUvarint(b, uint64(seq))
}

func (v6) end(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(dst, uint32(wire.BlockEnd)<<24)
}

// appendSized appends the size of b, and b.
func appendSized(dst, b []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(dst, uint16(len(b))), b...)
}

// appendUTF8 appends a string of version 6.
func appendUTF8(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
