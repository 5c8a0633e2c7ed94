// Package memory records what is known of a process's memory besides calls of its
// allocators: how much is resident, the state of malloc's heap, and the kernel's flags of
// its pages.
//
// Resident memory and the heap are read about once a second during a recording, because
// they cannot be read any more when the process has ended.
package memory
