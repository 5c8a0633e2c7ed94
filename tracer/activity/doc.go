// Package activity sees in the kernel what a process does beside allocations: where
// its threads are at regular times, when they leave a processor and run again, and
// which system calls they make. Its BPF programs (bpf/activity.bpf.c) write into ring
// buffers that package tracer reads and merges with the calls of the allocator.
//
// The kernel keeps none of it when the tracer dies: there are no breakpoints, and its
// links end with its descriptors.
package activity
