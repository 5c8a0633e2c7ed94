// Package ring reads the two kinds of buffers through which the kernel passes records to user
// space: BPF ring buffers ([BPF]) and perf event buffers ([Perf]). Both are read in place,
// without a system call, and without a copy unless the record wraps.
//
// Neither type is safe for concurrent use.
package ring
