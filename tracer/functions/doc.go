// Package functions sees in the kernel the calls of functions that the user names: who
// enters them with which arguments, what they return, and values that they have on the
// way. Its BPF programs (bpf/functions.bpf.c) write into ring buffers that package
// tracer reads and merges with the calls of the allocator. Package tracer also finds the
// functions in the process and attaches the programs; this one knows nothing of files.
package functions
