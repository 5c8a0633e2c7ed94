package filter

import (
	"slices"

	"rtrace-bpf/trace"
)

// Selection selects calls of a trace, and limits their stacks. It is applied in
// the order of its fields, as in the sp-rtrace post-processor. Call.Seq does
// not change.
type Selection struct {
	// Depth is the number of frames of a stack that count, if Shallow is set.
	// Further frames are cut off unless Whole is set, which leaves that to a
	// later step.
	Shallow, Whole bool
	Depth          int

	// Resources is a mask of 1<<(id-1) for the selected resources; 0 means all.
	// Calls of resources that the trace does not declare are always selected.
	Resources uint32

	// Addresses selects calls with a frame in [Start, End), if End is not 0.
	Addresses struct{ Start, End uint64 }

	// Include selects the calls whose Seq it contains, Exclude all others. nil
	// selects all. Both must be in ascending order.
	Include, Exclude []uint64

	// Keep, if not nil, reports whether a call is selected.
	Keep func(*trace.Call) bool

	// Contexts selects calls and contexts that have one of its bits if
	// InContext is set. If Contexts is 0, it selects calls without a context.
	InContext bool
	Contexts  uint32

	// NoArgs removes the arguments of calls.
	NoArgs bool
}

// Everything reports whether the selection keeps all calls unchanged.
func (s *Selection) Everything() bool {
	return !s.Shallow && s.Resources == 0 && !s.NoArgs && !s.Splits()
}

// Splits reports whether the selection may drop the allocation of a block and
// keep its free, or the other way round.
func (s *Selection) Splits() bool {
	return s.Addresses.End != 0 || s.Include != nil || s.Exclude != nil || s.Keep != nil || s.InContext
}

// Select is a trace.Reader that applies a selection. It also drops the
// declarations of resources and contexts that are not selected.
type Select struct {
	// AllCalls passes on every call unchanged; only declarations are selected.
	AllCalls bool

	src      trace.Reader
	chosen   *Selection
	declared *resourceSet
}

// resourceSet is the set of declared resources.
type resourceSet struct{ ids map[uint32]bool }

var _ trace.Reader = (*Select)(nil)

// NewSelect returns a Select that reads src.
func NewSelect(src trace.Reader, chosen *Selection) *Select {
	return &Select{src: src, chosen: chosen, declared: &resourceSet{make(map[uint32]bool)}}
}

// Over returns a Select with the same selection that reads src, which may lack
// the declarations that s has read.
func (s *Select) Over(src trace.Reader) *Select {
	return &Select{src: src, chosen: s.chosen, declared: s.declared}
}

// ReadRecord implements trace.Reader.
func (s *Select) ReadRecord(r *trace.Record) error {
	for {
		if err := s.src.ReadRecord(r); err != nil {
			return err
		}
		switch r.Kind {
		case trace.KindCall:
			if !s.AllCalls && !s.call(&r.Call) {
				continue
			}
		case trace.KindProcess:
			if s.chosen.Shallow {
				r.Process.Depth = s.chosen.Depth
			}
		case trace.KindResource:
			s.declared.ids[r.Resource.ID] = true
			if !s.resource(r.Resource.ID) {
				continue
			}
		case trace.KindContext:
			if s.chosen.InContext && r.Context.ID&s.chosen.Contexts == 0 {
				continue
			}
		}
		return nil
	}
}

// resource reports whether a resource is selected. The shift is that of a
// 32-bit word, as in the printed mask.
func (s *Select) resource(id uint32) bool {
	return s.chosen.Resources == 0 || s.chosen.Resources&(1<<((id-1)&31)) != 0
}

// call reports whether a call is selected, and cuts its stack.
func (s *Select) call(c *trace.Call) bool {
	x := s.chosen
	if x.NoArgs {
		c.Args = nil
	}
	frames := c.Stack.Frames
	if x.Shallow && len(frames) > x.Depth {
		frames = frames[:x.Depth]
		if !x.Whole {
			Cut(&c.Stack, x.Depth)
		}
	}
	if x.Resources != 0 && !s.resource(c.Resource) && s.declared.ids[c.Resource] {
		return false
	}
	if a := x.Addresses; a.End != 0 && !slices.ContainsFunc(frames, func(f uint64) bool { return a.Start <= f && f < a.End }) {
		return false
	}
	if x.Include != nil && !has(x.Include, c.Seq) || x.Exclude != nil && has(x.Exclude, c.Seq) {
		return false
	}
	if x.Keep != nil && !x.Keep(c) {
		return false
	}
	switch {
	case !x.InContext:
		return true
	case x.Contexts == 0:
		return c.Context == 0
	}
	return c.Context&x.Contexts != 0
}

func has(sorted []uint64, n uint64) bool {
	_, ok := slices.BinarySearch(sorted, n)
	return ok
}

// Cut truncates a stack to its innermost depth frames.
func Cut(s *trace.Stack, depth int) {
	if len(s.Frames) <= depth {
		return
	}
	s.Frames, s.ID = s.Frames[:depth], 0
	if len(s.Names) > depth {
		s.Names = s.Names[:depth]
	}
	s.End, s.Reason = trace.StackTruncated, ""
}
