// Package tables keeps the unwind tables of a process's files in the kernel and updates
// them while the process maps and unmaps files.
//
// A [Space] holds the mappings of one process as the BPF programs see them. The
// [Follower] updates it. [Tables] holds the rows of each file once, for all processes.
package tables
