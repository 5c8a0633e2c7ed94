package plan

import (
	"errors"
	"runtime"
)

// FaultEvents reports whether perf events count the page faults, because the kernel has
// tracepoints for page faults of programs only on x86.
func (o *Options) FaultEvents() bool { return runtime.GOARCH != "amd64" || o.Testing.FaultEvents }

// checkFaults returns an error if page faults cannot be recorded with the other options.
func (o *Options) checkFaults() error {
	switch {
	case !o.NoMemory || len(o.Modules) > 0:
		return errors.New("resident memory is recorded alone, without other resources")
	case o.Functions.Any():
		return errors.New("resident memory is recorded without calls of functions")
	case o.Buffer == BufferPerf:
		return errors.New("page faults need ring buffers")
	case o.Unwind == UnwindHelper:
		return errors.New("the kernel's own walker does not find the stacks of page faults")
	case o.Budget > 0:
		return errors.New("page faults are recorded without probes: leave the budget out")
	case o.MaxRate > 0:
		return errors.New("recording of page faults does not pause at a rate of calls")
	}
	return nil
}
