package trace

import "slices"

// Function names the code at [Start, End) where no file names it: code that a
// runtime compiled. The name holds for the whole trace, including the records before
// this one.
type Function struct {
	Name       string // as the source names it, with parameters where that is usual
	Start, End uint64
	Module     string // path of the file it was compiled from; empty if unknown
}

// Sample is a stack that a sampler found.
type Sample struct {
	Name   string // what was sampled: "cpu"
	Weight uint64 // how much it stands for; 1 if the source does not record that
	Stack  Stack
}

// Event is an event that has no kind of its own.
type Event struct {
	Provider string // what reported it
	Name     string // empty if it has none
	ID       uint32 // the provider's number for it
	Args     []Arg
	// Data is the payload if its fields are unknown or do not match it.
	Data  []byte
	Stack Stack
}

func (s Stack) clone() Stack {
	s.Frames, s.Names = slices.Clone(s.Frames), slices.Clone(s.Names)
	return s
}
