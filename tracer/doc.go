// Package tracer records the allocator calls of a running process with uprobes
// and eBPF. It is the only package that knows BPF, and runs on Linux only.
//
// [NewPlan] looks at the process and the kernel and decides what to probe,
// where and how; nothing is touched yet. [Open] loads the programs of bpf/,
// attaches them and starts the collector; the [Tracer] it returns is a
// trace.Reader.
//
// The way of an event: a program writes it into the ring of its CPU
// (source, package ring); the collector reads all rings and puts the events in
// the order of their times (merger) up to a time before which nothing can come
// any more, and sends them in batches to the reader of the Tracer, which
// decides what each realloc was (moves), follows the mappings and turns events
// into records (stream). docs/architecture.md shows all of it.
package tracer
