package dataset

import (
	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// stackNumbers numbers the distinct stacks of a trace from 1. A stack through addresses
// that got another meaning has another number than before.
type stackNumbers struct {
	processes live.Processes[stacksOf]
	mappings  aggregate.Mappings
	last      int64
}

// stacksOf is the stacks of a process.
type stacksOf struct {
	names  sites.Names
	places sites.Table
	number []int64 // by place
}

func newStackNumbers() stackNumbers {
	return stackNumbers{processes: live.NewProcesses(func() *stacksOf { return new(stacksOf) })}
}

// of returns the number of a stack, or of a caller without a stack, and whether it is new.
// It is 0 if there is neither.
func (s *stackNumbers) of(pid int32, stack *trace.Stack, caller *trace.Caller) (number int64, isNew bool) {
	p := s.processes.Of(pid)
	place := int(p.places.Add(stack, caller, &p.names))
	if place == 0 {
		return 0, false
	}
	for place >= len(p.number) {
		p.number = append(p.number, 0)
	}
	if p.number[place] == 0 {
		s.last++
		p.number[place] = s.last
		isNew = true
	}
	return p.number[place], isNew
}

// observe processes a record that may change which code is at an address.
func (s *stackNumbers) observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindExec:
		s.mappings.Drop(r.PID)
		s.processes.Drop(r.PID)
	case trace.KindMapping:
		if s.mappings.Add(r.PID, &r.Mapping) {
			for _, p := range s.processes.Concerned(r.PID) {
				clear(p.number)
			}
		}
	}
}
