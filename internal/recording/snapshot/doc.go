// Package snapshot writes the live blocks and the sums of each call site to files at regular
// times, while their process is recorded. docs/snapshots.md describes the files.
package snapshot
