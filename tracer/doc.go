// Package tracer records the allocator calls of a running process with uprobes and eBPF.
// Only tracer and the packages below it use BPF. They run on Linux alone.
//
// The packages from top to bottom; each imports only those after it:
//
//   - tracer opens, reads and closes a trace ([Open])
//   - collector polls the rings and passes events on in batches
//   - governor keeps to a rate limit, and moves probes to threads that continue
//   - probe attaches the probes
//   - programs loads the BPF programs and switches them on and off
//   - record turns ordered events into records
//   - tables keeps unwind tables in the kernel
//   - order merges the kernel's events into one order, and counts losses
//   - plan decides what to probe and where
//   - process describes the traced process
//   - host reports what this machine offers
//   - object contains the compiled BPF programs
//
// The way of an event: a BPF program writes it into the ring of its CPU (package ring reads
// it). The collector merges all rings up to the watermark, a time before which no event can
// come any more, and sends batches to the reader of the [Tracer], whose stream makes
// records of them. docs/design contains the reasons.
package tracer
