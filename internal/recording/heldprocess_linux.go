package recording

import (
	"rtrace-bpf/tracer/arrival"
	"rtrace-bpf/tracer/launch"
)

// Held is a process that is held from its exec until its probes are attached.
type Held interface {
	// Next lets it run to the next place where probes may be attached. It reports whether
	// there is one.
	Next() (there bool, err error)
	// Release lets it run.
	Release() error
	// GiveUp is for a process that cannot be traced: a command is not run, a process of
	// somebody else runs on.
	GiveUp() error
}

// Command is a command that this program has started.
type Command struct{ *launch.Command }

// GiveUp kills the command.
func (c Command) GiveUp() error {
	c.Kill()
	return nil
}

// Arrived is a process that was waited for.
type Arrived struct{ *arrival.Arrival }

// GiveUp lets the process run.
func (a Arrived) GiveUp() error { return a.Release() }
