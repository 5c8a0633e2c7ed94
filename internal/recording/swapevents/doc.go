// Package swapevents makes the records of SWAP that are not calls of allocators: open
// files, states of the machine, samples, context switches, system calls, uses of files,
// calls of functions that the user names, and the report of blocks that were not freed.
package swapevents
