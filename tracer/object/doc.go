// Package object holds the compiled BPF programs of bpf/rtrace.bpf.c in four variants,
// and the Go types of their records and maps. bpf2go generates it (gen.go at the top of
// the module).
package object
