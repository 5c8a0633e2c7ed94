// Package machine reads the state of the whole machine and of one process on Linux: loads,
// memory, disks, network. It is made for frequent readings: files stay open, and what is slow
// to read is read less often.
//
// The formats are those of the kernel's Documentation/filesystems/proc.rst,
// Documentation/admin-guide/iostats.rst and Documentation/ABI.
package machine

import "errors"

// ErrGone reports that the process has ended.
var ErrGone = errors.New("process has ended")

// Reading is the state of the machine at a moment. Loads, Disks and Network cover the time
// since the last Reading; in the first one they are 0.
type Reading struct {
	Time int64 // CLOCK_MONOTONIC in ns

	Frequencies []float32 // of each processor in kHz; 0 if unknown
	Loads       []float32 // of each processor in percent: the time that it was not idle
	MemoryUsed  uint64    // bytes that are not available to programs
	Target      Process
	Others      []Load // of the other processes that used a processor, ordered by ID
	DriveUsed   uint64 // bytes in use in the file system of the root folder
	Disks       Disks
	Network     Network
	Brightness  uint64 // of the first screen with a backlight, in its own unit; 0 for none
	Voltage     uint64 // of the first battery, in µV; 0 for none
}

// Process is the state of the process that is read.
type Process struct {
	Load
	Virtual, Resident, Shared, PSS uint64 // bytes
	Threads                        []Load // ordered by ID
}

// Load is how much of the processors a process or thread used.
type Load struct {
	ID      int
	Percent float32 // of all processors together, 0 to 100
}

// Disks is what all disks together did. Partitions and devices made from disks are not counted
// again.
type Disks struct {
	Reads, BytesRead, Writes, BytesWritten uint64
}

// Network is what all interfaces but the loopback one sent and received, in bytes.
type Network struct {
	Sent, Received uint64
}
