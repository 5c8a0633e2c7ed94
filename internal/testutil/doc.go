// Package testutil helps tests that trace programs. It builds the programs of testdata/progs,
// holds them at a gate until the test lets them continue, reads their reports about their own
// calls, and detects whether this machine can run BPF tests at all.
//
// Nothing here sleeps: a test waits for a pipe, a process or a file to appear.
package testutil
