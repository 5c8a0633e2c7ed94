package trace

import "slices"

// Function says what the code at [Start, End) is called, which the trace tells
// since no file does: code that a runtime compiled. It holds for the whole trace,
// also for what stands before it.
type Function struct {
	Name       string // as the source names it, with parameters where that is usual
	Start, End uint64
	Module     string // path of the file it was compiled from; empty if unknown
}

// Sample is a stack that a sampler found.
type Sample struct {
	Name   string // what was sampled: "cpu"
	Weight uint64 // how much it stands for; 1 if the source does not say
	Stack  Stack
}

// Event is something that happened and that no other kind is for.
type Event struct {
	Provider string // who tells of it
	Name     string // empty if it has none
	ID       uint32 // by which the provider knows it
	Args     []Arg
	// Data is what comes with it where nothing is known of its fields, or they do
	// not fit.
	Data  []byte
	Stack Stack
}

func (s Stack) clone() Stack {
	s.Frames, s.Names = slices.Clone(s.Frames), slices.Clone(s.Names)
	return s
}
