// Package machine reads what Linux tells of the state of the whole machine and of one
// process: loads, memory, disks, network. It is made to be asked often: files stay
// open, and what takes long to read is read less often.
//
// The formats are those of the kernel's Documentation/filesystems/proc.rst,
// Documentation/admin-guide/iostats.rst and Documentation/ABI.
package machine

import "errors"

// ErrGone says that the process has ended.
var ErrGone = errors.New("process has ended")

// Reading is the state of the machine at a moment. Loads, and what Disks and Network
// have, are of the time since the Reading before; in the first one they are 0.
type Reading struct {
	Time int64 // CLOCK_MONOTONIC in ns

	Frequencies []float32 // of each processor in kHz; 0 where the machine does not tell
	Loads       []float32 // of each processor in percent: what it was not idle
	MemoryUsed  uint64    // bytes that are not available to programs
	Target      Process
	Others      []Load // of the other processes that used a processor, ordered by id
	DriveUsed   uint64 // bytes of the file system of the root folder
	Disks       Disks
	Network     Network
	Brightness  uint64 // of the first screen with a backlight, in its own unit; 0 for none
	Voltage     uint64 // of the first battery, in µV; 0 for none
}

// Process is the state of the process that was asked for.
type Process struct {
	Load
	Virtual, Resident, Shared, PSS uint64 // bytes
	Threads                        []Load // ordered by id
}

// Load is how much a process or thread used the processors.
type Load struct {
	ID      int
	Percent float32 // of all processors together, 0 to 100
}

// Disks is what all disks together did. Partitions, and what is made of disks, are not
// counted again.
type Disks struct {
	Reads, BytesRead, Writes, BytesWritten uint64
}

// Network is what all interfaces but the loopback one sent and received, in bytes.
type Network struct {
	Sent, Received uint64
}
