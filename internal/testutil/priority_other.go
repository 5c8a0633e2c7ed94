//go:build !linux

package testutil

// ordinary calls start, which starts a process.
func ordinary(start func() error) error { return start() }
