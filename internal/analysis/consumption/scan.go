package consumption

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

const (
	// memory is the resource type of memory blocks, and of calls whose resource
	// is not declared.
	memory = "memory"
	// blockOverhead is the original's assumption about an allocator's overhead
	// for each block, in bytes.
	blockOverhead = 8
	// maxKinds and maxContexts bound the memory that a trace can require.
	// sp-rtrace itself supports 32 of each.
	maxKinds    = 64
	maxContexts = 32
)

// Context is a phase of the program that calls can be in.
type Context struct {
	ID   uint32 // the bit; 0 for None, all bits for All
	Name string
}

// All is the context of all calls, None that of calls in no context.
var (
	All  = Context{^uint32(0), "all"}
	None = Context{0, "no contexts"}
)

// Errors of Scan.Check: there is nothing to count; a report needs times, and
// the trace has none; a filter names a resource that the trace does not have.
var (
	ErrEmpty    = errors.New("nothing to show: the trace has no calls, or none passes the filters")
	ErrTimes    = errors.New("the trace has no times")
	ErrResource = errors.New("the trace has no resource of type")
)

// Scan is the first pass over a trace: it finds the types of resources and the
// contexts, wherever they are declared, and the times of the first and the last
// call that pass a filter.
type Scan struct {
	filter   Filter
	legacy   bool
	gate     gate
	clock    clock
	span     Span
	kinds    []resource
	byID     map[uint32]int // 1 + index in kinds
	types    map[string]bool
	contexts []Context
	further  bool // there were more than maxContexts
	timeless bool // a call had no time
	timed    bool // Span.First is known
	late     error
}

// NewScan returns a Scan. If calls is set, the axis of the reports is the
// number of the call instead of the time.
func NewScan(f Filter, legacy, calls bool) *Scan {
	s := &Scan{filter: f, legacy: legacy, gate: newGate(f, legacy), byID: make(map[uint32]int), types: make(map[string]bool)}
	s.clock.legacy = legacy
	s.span.Calls = calls
	return s
}

// Add processes a record. It keeps no reference to the contents of r.
func (s *Scan) Add(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		s.clock.begin(&r.Header)
	case trace.KindResource:
		s.declare(resource{ID: r.Resource.ID, Type: strings.Clone(r.Resource.Type), counted: r.Resource.RefCount})
	case trace.KindContext:
		s.context(r.Context)
	case trace.KindCall:
		s.call(r)
	}
}

// resource is a resource as it was declared, or assumed for a call.
type resource struct {
	ID      uint32
	Type    string
	counted bool
	assumed bool
}

func (s *Scan) declare(r resource) {
	at := s.byID[r.ID] - 1
	switch {
	case at >= 0 && (!s.kinds[at].assumed || r.assumed):
		return
	case at >= 0:
		s.kinds[at] = r
	case len(s.kinds) == maxKinds:
		s.late = fmt.Errorf("the trace has more than %d resources", maxKinds)
		return
	default:
		s.kinds = append(s.kinds, r)
		s.byID[r.ID] = len(s.kinds)
	}
	s.types[r.Type] = true
}

// resources returns the resources in the order of their IDs.
func (s *Scan) resources() []resource {
	return slices.SortedFunc(slices.Values(s.kinds), func(a, b resource) int { return cmp.Compare(a.ID, b.ID) })
}

func (s *Scan) context(c trace.Context) {
	if slices.ContainsFunc(s.contexts, func(x Context) bool { return x.ID == c.ID }) {
		return
	}
	if len(s.contexts) == maxContexts {
		s.further = true
		return
	}
	s.contexts = append(s.contexts, Context{c.ID, strings.Clone(c.Name)})
	slices.SortFunc(s.contexts, func(a, b Context) int { return cmp.Compare(a.ID, b.ID) })
}

// Doubts returns a warning about the reports, or nil: a call has 32 bits for
// its contexts, and a trace that declares more contexts is odd.
func (s *Scan) Doubts() error {
	if !s.further {
		return nil
	}
	return fmt.Errorf("the trace declares more than %d contexts; the others are left out", maxContexts)
}

func (s *Scan) call(r *trace.Record) {
	n := s.byID[r.Call.Resource]
	if n == 0 {
		s.declare(resource{ID: r.Call.Resource, Type: memory, assumed: true})
		if n = s.byID[r.Call.Resource]; n == 0 {
			return
		}
	}
	now, ok := s.clock.read(r.Time)
	if !ok {
		s.timeless = true
	}
	if !s.gate.kind(s.kinds[n-1].Type) || !s.gate.passes(&r.Call, now, ok) {
		return
	}
	s.span.Total++
	if s.span.Calls {
		s.span.First, s.span.Last = 1, int64(s.span.Total)
		return
	}
	if !ok {
		return // it counts as if at the first known time
	}
	if !s.timed || s.legacy && now < s.span.First {
		s.timed, s.span.First = true, now
	}
	s.span.Last = max(s.span.Last, now)
}

// Check returns an error if the trace does not suit the reports.
func (s *Scan) Check(reports Report) error {
	if s.late != nil {
		return s.late
	}
	if name := s.filter.Resource; name != "" && !s.types[name] {
		known := make([]string, 0, len(s.types))
		for t := range s.types {
			known = append(known, t)
		}
		slices.Sort(known)
		return fmt.Errorf("%w %q; it has %s", ErrResource, name, strings.Join(known, ", "))
	}
	switch {
	case s.timeless && (s.legacy || !s.clock.begun) && s.needsTimes(reports):
		return ErrTimes
	case s.span.Total == 0:
		return ErrEmpty
	case s.span.Duration() < 0 || s.span.First < 0:
		return errors.New("the times of the trace are not in its first 292 years")
	}
	return nil
}

func (s *Scan) needsTimes(reports Report) bool {
	return reports.Timed() && !s.span.Calls || len(s.filter.Times) > 0
}

// Span returns the part of the trace that the reports cover.
func (s *Scan) Span() Span {
	span := s.span
	span.ByCall = span.First == span.Last && !span.Calls
	return span
}
