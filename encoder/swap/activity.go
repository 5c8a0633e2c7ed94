package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
)

// Sample is the place where a sample found a thread.
type Sample struct {
	Where
	PC uint64
}

func (m *Sample) messageID() uint32 { return wire.Sample }

func (m *Sample) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.PID)
	b = binary.LittleEndian.AppendUint64(b, m.PC)
	b = binary.LittleEndian.AppendUint32(b, m.TID)
	return binary.LittleEndian.AppendUint32(b, m.CPU)
}

// Switch records that a thread leaves its processor or runs again.
type Switch struct {
	Where
	Runs bool   // runs again
	PC   uint64 // 0 if unknown
}

func (m *Switch) messageID() uint32 {
	if m.Runs {
		return wire.ContextSwitchExit
	}
	return wire.ContextSwitchEntry
}

func (m *Switch) appendTo(b []byte) []byte {
	b = m.appendThread(binary.LittleEndian.AppendUint64(b, m.PC))
	return binary.LittleEndian.AppendUint32(b, m.CPU)
}
