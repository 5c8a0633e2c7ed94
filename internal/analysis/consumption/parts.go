package consumption

import "slices"

// parts divides the calls of a type of resource by context.
type parts struct {
	// Parts are the parts of the contexts, in the order of their IDs; empty if
	// the trace has no contexts.
	Parts []*Part

	all  *Part
	none *Part
	buf  []*Part // what in returns
}

// Everything returns the parts, followed by that of all calls.
func (p *parts) Everything() []*Part { return append(slices.Clone(p.Parts), p.all) }

// Part holds the figures of the calls in a context for a type of resource.
type Part struct {
	Context Context
	// Live is the curve of live bytes; the part of all calls has Kind.Sum.
	Live *Curve
	// Rate, Allocs and Frees are the curves of the activity report: bytes and
	// blocks allocated, and blocks freed, in the slice that ends at each
	// position.
	Rate, Allocs, Frees *Curve

	series struct{ live, rate, allocs, frees int }
	bytes  uint64
	steps  []step
	legacy *legacyPart
	timed  bool // whether it has series of activity
	summed bool // whether it has series of totals
}

// in returns the parts that a call with a mask of contexts belongs to, that of
// all calls first. The slice is valid until the next call.
func (p *parts) in(contexts []Context, mask uint32) []*Part {
	if p.all == nil {
		p.all = &Part{Context: All}
	}
	p.buf = append(p.buf[:0], p.all)
	if len(contexts) == 0 {
		return p.buf
	}
	for i := range contexts {
		if c := &contexts[i]; c.ID&mask != 0 {
			p.buf = append(p.buf, p.part(*c))
		}
	}
	if mask == 0 {
		if p.none == nil {
			p.none = p.part(None)
		}
		p.buf = append(p.buf, p.none)
	}
	return p.buf
}

// part returns the part of a context.
func (p *parts) part(c Context) *Part {
	at := 0
	for ; at < len(p.Parts) && p.Parts[at].Context.ID <= c.ID; at++ {
		if p.Parts[at].Context.ID == c.ID {
			return p.Parts[at]
		}
	}
	added := &Part{Context: c}
	p.Parts = slices.Insert(p.Parts, at, added)
	return added
}
