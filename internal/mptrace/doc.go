// Package mptrace does what mpatrol's tool of that name does. It counts the
// events of a tracing file and prints them as a table, as statistics, in the
// Heap Allocation Trace Format, and as a C program that repeats the
// allocations.
//
// The layout of all texts is that of the original tool. Its numbers are
// corrected here by a [Book]; package original has the uncorrected ones.
package mptrace
