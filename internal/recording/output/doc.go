// Package output opens, writes and completes what a recording leaves: the trace of a
// process, its side file, the files that are attached to it, and the temporary file that
// keeps its records until the end.
package output
