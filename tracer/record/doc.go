// Package record turns ordered events into the records of a trace. A [Stream] decides
// what each realloc was, defines stacks once, follows mappings, threads and live blocks,
// and emits the records that these changes need.
package record
