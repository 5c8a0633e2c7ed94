// Package record turns ordered events into the records of a trace. A [Stream] decides
// whether each realloc was a move, defines each stack once, follows mappings, threads and
// live blocks, and emits records of their changes.
package record
