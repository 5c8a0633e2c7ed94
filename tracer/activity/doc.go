// Package activity records in the kernel what a process does besides allocating: where its
// threads are at regular intervals, when they leave a processor and run again, and which system
// calls they make. Its BPF programs (bpf/activity.bpf.c) write to ring buffers, which package
// tracer reads and merges with the calls of the allocator.
//
// Nothing remains in the kernel when the tracer dies: there are no breakpoints, and the links end
// with their descriptors.
package activity
