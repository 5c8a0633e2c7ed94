// Package tables keeps unwind tables in the kernel, for the files that a process has
// mapped, while it maps and unmaps files.
//
// A [Space] is the mappings of one process as the BPF programs see them. The [Follower]
// updates it. [Tables] holds the rows of each file once, for all processes.
package tables
