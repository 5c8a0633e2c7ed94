// Package arrival waits for the next process that executes a program with a given name, and holds
// it at its first instruction until the probes are attached.
//
// A BPF program (bpf/arrival.bpf.c) selects the first such process and notifies the holder, which
// seizes the process with ptrace while it is still in its exec. So nobody sees it stop. If the
// holder does not seize it within milliseconds, a signal stops the process until the holder does.
// Its parent may notice that.
//
// The holder is a separate process without a terminal. If either the holder or the tracer ends,
// in any way, the other one lets the process go. The kernel releases what was held with ptrace,
// and nothing was written into the process. The survivor continues a process that the signal had
// stopped.
package arrival
