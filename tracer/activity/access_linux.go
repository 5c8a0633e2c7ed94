package activity

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"
)

// Access is a use of a file by another process.
type Access struct {
	FD   int32  // its descriptor
	File uint64 // unique as long as the process has the file open
	// Path is the file's path as seen by the other process, from the root of its mounts. It
	// begins with "..." if it is too long or too deep. Only the first use after the process has
	// opened the file has it; later it is empty.
	Path   string
	Event  FileEvent // what begins
	Opened string    // FileOpens: the path that the program passed, truncated to 511 bytes; empty if it was not in memory
	Lock   Lock      // FileLocks, FileUnlocks
}

// FileEvent is what is done to a file. The numbers are SWAP's.
type FileEvent uint32

// The operations on files.
const (
	FileOpens   = FileEvent(filesFileEventFILE_OPENED)
	FileCloses  = FileEvent(filesFileEventFILE_CLOSES)
	FileReads   = FileEvent(filesFileEventFILE_READS)
	FileWrites  = FileEvent(filesFileEventFILE_WRITES)
	FileLocks   = FileEvent(filesFileEventFILE_LOCKS)
	FileUnlocks = FileEvent(filesFileEventFILE_UNLOCKS)
)

// Lock is a lock on a part of a file, with the numbers of fcntl.
type Lock struct {
	Type, Whence  uint32
	Start, Length int64 // bytes; a length of 0 extends to the end of the file
}

const (
	accessSize       = int(unsafe.Offsetof(filesActivityFile{}.Path)) // of a record without a path
	accessPathSize   = int(unsafe.Offsetof(filesActivityFile{}.Text)) // with a path
	accessOpenedSize = int(unsafe.Sizeof(filesActivityFile{}))        // with a path and the program's path
)

// decodeAccess decodes a record about a file. e has the fields that all records have.
func decodeAccess(b []byte, e *Event) bool {
	if len(b) < accessSize {
		return false
	}
	var record filesActivityFile // the ring's record may be shorter
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&record)), accessOpenedSize), b)
	e.User = record.Pid
	e.Access = &Access{
		FD: record.Fd, File: record.File, Event: FileEvent(record.Event),
		Lock: Lock{
			Type: record.LockType, Whence: record.LockWhence,
			Start: int64(record.LockStart), Length: int64(record.LockLength),
		},
	}
	if n := int(record.PathLength); len(b) >= accessPathSize && n <= len(record.Path) {
		e.Access.Path = joinPath(record.Path[:n])
	}
	if e.Access.Event == FileOpens && len(b) >= accessOpenedSize {
		e.Access.Opened = text(record.Text[:])
	}
	return true
}

// joinPath makes a path from its parts, which are in reverse order. If an empty part for the root
// does not follow them, parts are missing.
func joinPath(parts []byte) string {
	list := strings.Split(strings.TrimSuffix(string(parts), "\x00"), "\x00")
	if len(parts) == 0 {
		return ""
	}
	slices.Reverse(list)
	if list[0] != "" {
		list = slices.Insert(list, 0, "...")
	}
	return strings.Join(list, "/")
}

// text returns what precedes the first NUL.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
