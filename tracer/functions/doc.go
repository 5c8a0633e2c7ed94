// Package functions observes in the kernel the calls of functions that the user names: which
// thread enters them with which arguments, what they return, and values at places in their code.
// Its BPF programs (bpf/functions.bpf.c) write to ring buffers, which package tracer reads and
// merges with the calls of the allocator. Package tracer also finds the functions in the process
// and attaches the programs. This package reads no files.
package functions
