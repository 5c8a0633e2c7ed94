// Package library attributes the blocks of a trace to libraries. The library of
// a block is the file whose mapping, at the time of the call, contains the
// caller of the allocator. The package counts what each library allocated and
// how much of that is live.
package library
