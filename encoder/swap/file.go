package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
)

// FileUse is a message about another process that begins or ends a use of a file that
// the traced process has open.
type FileUse struct {
	PID, TID uint32 // of the other process
	FD       int32
	Event    uint32 // a value of event_type
	Path     string
	Opened   string // with FileOpen: the path as the program passed it
	Lock     Lock   // with FileLock and FileUnlock
	Ended    bool
	Result   int64 // if Ended
}

// Lock is a part of a file, with the numbers of fcntl.
type Lock struct {
	Type, Whence  uint32
	Start, Length int64
}

// Events of FileUse that have more than a path.
const (
	FileOpen   = 0
	FileLock   = 14
	FileUnlock = 16
)

// Values of args_type.
const (
	fileArgsNone = 0
	fileArgsOpen = 1
	fileArgsLock = 2
)

func (m *FileUse) messageID() uint32 {
	if m.Ended {
		return wire.FileFunctionExit
	}
	return wire.FileFunctionEntry
}

func (m *FileUse) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.PID)
	b = binary.LittleEndian.AppendUint32(b, m.TID)
	if m.Ended {
		return appendNumber(b, 'x', uint64(m.Result))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(m.FD))
	b = binary.LittleEndian.AppendUint32(b, m.Event)
	b = appendString(b, m.Path)
	switch m.Event {
	case FileOpen:
		b = binary.LittleEndian.AppendUint32(b, fileArgsOpen)
		return appendString(b, m.Opened)
	case FileLock, FileUnlock:
		b = binary.LittleEndian.AppendUint32(b, fileArgsLock)
		b = binary.LittleEndian.AppendUint32(b, m.Lock.Type)
		b = binary.LittleEndian.AppendUint32(b, m.Lock.Whence)
		b = binary.LittleEndian.AppendUint64(b, uint64(m.Lock.Start))
		return binary.LittleEndian.AppendUint64(b, uint64(m.Lock.Length))
	}
	return binary.LittleEndian.AppendUint32(b, fileArgsNone)
}
