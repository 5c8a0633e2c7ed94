package main

import "rtrace-bpf/tracer/launch"

// heldProcess is a process that is held from its exec until the probes are in.
type heldProcess interface {
	// Next lets it run to the next place where probes may be put in, if there is one.
	Next() (there bool, err error)
	// Release lets it go.
	Release() error
	// GiveUp is for one that cannot be traced: a command is not run, what others have
	// started goes on.
	GiveUp() error
}

// ownCommand is a command that we have started.
type ownCommand struct{ *launch.Command }

func (c ownCommand) GiveUp() error {
	c.Kill()
	return nil
}
