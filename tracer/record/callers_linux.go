package record

import (
	"slices"

	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// callers knows what kind of code makes a call of a resource module's function.
type callers struct {
	open       *functions.Calls
	mappings   *mappings
	program    process.FileID   // the process's program
	loader     process.FileID   // the dynamic loader, which is a part of the C library
	allocators []process.FileID // files with allocators that are traced
}

// begin reads the files of a plan.
func (c *callers) begin(p *plan.Plan) {
	_, c.program = p.Target.LinkOrder()
	for i := range p.Layout.Loader {
		c.loader = p.Layout.Loader[i].ID
	}
	for i := range p.Target.Texts {
		c.allocators = append(c.allocators, p.Target.Texts[i].File)
	}
}

// allocator reports whether addr is in the code of a library with a traced allocator.
func (c *callers) allocator(addr uint64) bool {
	m := c.mappings.at(addr)
	return m != nil && m.ID() != c.program && slices.ContainsFunc(c.allocators, func(id process.FileID) bool { return id == m.ID() })
}

// inner reports whether a library made the call as a part of another call: the C library
// calls its own functions, and a library that replaces a function calls the original.
func (c *callers) inner(x *functions.Event) bool {
	if owner := x.Function.Owner; owner != "" {
		return c.open.Within(x.TID, func(entry *functions.Event) bool { return entry.Function.Owner == owner })
	}
	own, from := c.mappings.at(x.PC), c.mappings.at(x.Caller)
	if own == nil || from == nil {
		return false
	}
	if own.ID() == c.program {
		// All functions are in one file there.
		return c.open.Within(x.TID, func(entry *functions.Event) bool { return entry.Function.Owner == "" })
	}
	if own.ID() == from.ID() || from.ID() == c.loader || c.open.Continues(x) {
		return true
	}
	return c.open.Within(x.TID, func(entry *functions.Event) bool {
		outer := c.mappings.at(entry.PC)
		return entry.Function == x.Function && outer != nil && outer.ID() == from.ID()
	})
}
