// Package tracer records the allocator calls of a running process with uprobes and eBPF.
// Only it and the packages below it know BPF. They run on Linux alone.
//
// The rooms, from top to bottom; each imports only those after it:
//
//   - tracer opens, reads and closes a trace: programs and probes go in ([Open]), the
//     collector polls the rings, the governor keeps to a rate limit
//   - record turns ordered events into records
//   - tables keeps unwind tables in the kernel
//   - order merges what the kernel reports into one order, and counts losses
//   - plan decides what to probe and where
//   - process describes the traced process
//   - host tells what this machine offers
//   - object is the compiled BPF programs
//
// An event's way: a BPF program writes it into the ring of its CPU (package ring reads
// it), the collector merges all rings up to a time before which nothing can come any more
// and sends batches to the reader of the [Tracer], whose stream makes records of them.
// docs/design says why it is so.
package tracer
