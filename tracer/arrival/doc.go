// Package arrival waits for the next process that executes a program of some name, and
// holds it at its first instruction until the probes are in.
//
// A BPF program (bpf/arrival.bpf.c) takes the first such process and tells the holder,
// which seizes it by ptrace while it is still in its exec. So nobody sees it stop. If
// the holder is not there within milliseconds, the process is stopped by a signal until
// it is: its parent may see that.
//
// The holder is a process of its own, which no terminal reaches. Whichever of it and
// the tracer ends first, in whatever way, the other one lets the process go: the
// kernel does that with what was held by ptrace, and nothing was written into it; who
// is left continues one that the signal had stopped.
package arrival
