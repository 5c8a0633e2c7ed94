package activity

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"
)

// Access is how another process uses a file.
type Access struct {
	FD   int32  // its descriptor
	File uint64 // as long as the process has it open no other one has this number
	// Path is as who uses the file sees it from the root of its mounts; it begins with
	// "..." if it is too long or deep. It is told with the first use after the process
	// has opened the file; then it is empty.
	Path   string
	Event  FileEvent // what begins
	Opened string    // FileOpens: the path that the program gave, cut at 511 bytes; empty if it was not in memory
	Lock   Lock      // FileLocks, FileUnlocks
}

// FileEvent is what is done to a file. The numbers are those that SWAP has.
type FileEvent uint32

// What is done to files.
const (
	FileOpens   = FileEvent(filesFileEventFILE_OPENED)
	FileCloses  = FileEvent(filesFileEventFILE_CLOSES)
	FileReads   = FileEvent(filesFileEventFILE_READS)
	FileWrites  = FileEvent(filesFileEventFILE_WRITES)
	FileLocks   = FileEvent(filesFileEventFILE_LOCKS)
	FileUnlocks = FileEvent(filesFileEventFILE_UNLOCKS)
)

// Lock is a part of a file, with the numbers of fcntl.
type Lock struct {
	Type, Whence  uint32
	Start, Length int64 // bytes; a length of 0 is up to the end
}

const (
	accessSize       = int(unsafe.Offsetof(filesActivityFile{}.Path)) // of a record without a path
	accessPathSize   = int(unsafe.Offsetof(filesActivityFile{}.Text)) // and with one
	accessOpenedSize = int(unsafe.Sizeof(filesActivityFile{}))        // and with what the program gave
)

// decodeAccess reads a record about a file; e has what all records have.
func decodeAccess(b []byte, e *Event) bool {
	if len(b) < accessSize {
		return false
	}
	var record filesActivityFile // the ring's may be shorter
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

// joinPath makes a path of its parts, the last one of which stands first. Where an
// empty one for the root is not behind them they are not all.
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

// text returns what stands in front of the first NUL.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
