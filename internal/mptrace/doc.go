// Package mptrace does what mpatrol's tool of that name does: it keeps the
// accounts of the events of a tracing file and prints them as a table, as
// statistics, in the Heap Allocation Trace Format and as a C program that makes
// the same allocations again.
//
// The layout of all text is that of the real tool. Its numbers are corrected
// here, with a [Book]; package original has the uncorrected ones.
package mptrace
