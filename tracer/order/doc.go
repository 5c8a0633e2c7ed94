// Package order brings what the kernel reports into one order: it reads the rings of all
// CPUs, merges events by their times, adds the kernel's records about mappings, threads
// and processes (the sideband), and counts what was lost.
package order
