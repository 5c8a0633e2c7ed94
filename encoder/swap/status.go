package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// OpenFile is a file that a process has open.
type OpenFile struct {
	FD   int32
	Size uint64 // bytes
	Path string // begins with a slash
}

// maxFileSize is the largest size that readers accept.
const maxFileSize = 1<<48 - 1

// Status returns PROCESS_STATUS_INFO as a record that owns its memory, and how many of
// the files it holds. The document has a thread with each file; that field holds the
// process, since all its threads share open files.
func Status(d Dialect, now int64, pid int32, files []OpenFile) (r trace.Record, listed int) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(pid))
	b = binary.LittleEndian.AppendUint32(b, 0)
	for _, f := range files {
		const numbers = 4 + 4 + 8 + 1
		if len(b)+numbers+len(f.Path) > wire.MaxPayload {
			break
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(f.FD))
		if d == Document {
			b = binary.LittleEndian.AppendUint32(b, uint32(pid))
		}
		b = binary.LittleEndian.AppendUint64(b, min(f.Size, maxFileSize))
		b = appendString(b, f.Path)
		listed++
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(listed))
	return opaque(wire.ProcessStatusInfo, now, pid, b), listed
}

// LeakReport returns LSAN as a record that owns its memory. The message announces a
// report about blocks that were not freed, in the file name.
func LeakReport(now int64, pid int32, name string) trace.Record {
	b := binary.LittleEndian.AppendUint32(nil, wire.LSANReport)
	b = binary.LittleEndian.AppendUint32(b, uint32(pid))
	b = appendString(b, name)
	b = binary.LittleEndian.AppendUint32(b, 0) // call type
	return opaque(wire.LSAN, now, pid, binary.LittleEndian.AppendUint64(b, 0))
}
