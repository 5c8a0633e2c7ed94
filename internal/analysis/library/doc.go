// Package library says which library allocated the blocks of a trace: the file whose
// mapping, valid at that moment, the caller of the allocator lies in. It counts
// what each library allocated and what of that is live.
package library
