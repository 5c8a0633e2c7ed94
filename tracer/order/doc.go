// Package order brings the kernel's events into one order. It reads the rings of all
// CPUs, merges the events by time, adds the kernel's records about mappings, threads and
// processes (the sideband), and counts losses.
package order
