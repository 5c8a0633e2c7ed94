package main

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// locator makes locations of the stacks of calls.
type locator struct {
	resolver *resolve.Resolver // knows the mappings and, with names, the files
	framer   sites.Framer
	callers  *resolve.Callers // nil without names
	names    bool             // from files
	all      bool             // leave out no frames
	frames   []lines.Frame
	places   []sites.Place
}

// locate appends the locations of a call's stack, the innermost first. The first one is the
// function that 'rtrace leaks --by function' names: its callees, such as operator new, are
// left out. Without a stack it is the caller in the trace.
func (l *locator) locate(dst []stacks.Location, r *trace.Record) []stacks.Location {
	stack, caller := &r.Call.Stack, &r.Call.Caller
	if len(stack.Frames) == 0 {
		at := stacks.Location{}
		if *caller != (trace.Caller{}) {
			at.Lines = []stacks.Line{l.caller(caller)}
		}
		return append(dst, at)
	}
	start := len(dst)
	withFile := false // the text of the first frame has a file
	for i := range stack.Frames {
		at, file := l.location(r.PID, stack, i)
		if !l.all && len(dst) == start {
			if i+1 < len(stack.Frames) && sites.OperatorNew(at.Name()) {
				continue
			}
			for len(at.Lines) > 1 && sites.OperatorNew(at.Lines[0].Function) { // inlined
				at.Lines = at.Lines[1:]
			}
		}
		if len(dst) == start {
			withFile = file
		}
		dst = append(dst, at)
	}
	if l.all || withFile {
		return dst
	}
	return slices.Delete(dst, start, start+l.inner(dst[start:], r))
}

// location returns the location of frame i of a stack, and whether its text has a file.
func (l *locator) location(pid int32, stack *trace.Stack, i int) (at stacks.Location, withFile bool) {
	addr := stack.Frames[i]
	at.Addr = addr
	process := l.resolver.Process(pid)
	if m, ok := process.Mapping(addr); ok {
		at.Mapping = stacks.Mapping{Start: m.Start, End: m.End, Offset: m.Offset, Placed: m.Placed, Path: m.Path, BuildID: m.BuildID}
	}
	if len(stack.Names) == len(stack.Frames) {
		l.places = sites.AppendPlaces(l.places[:0], stack.Names[i])
		for _, p := range l.places {
			if at.Mapping.Path == "" {
				at.Mapping.Path = p.Module
			}
			if p.Function != "" {
				at.Lines = append(at.Lines, stacks.Line{Function: p.Function, File: p.File, Line: p.Line})
			}
		}
		if len(at.Lines) > 0 {
			return at, at.Lines[0].File != ""
		}
	}
	if l.names {
		l.frames = process.Frames(l.frames[:0], addr)
		for i := range l.frames {
			f := &l.frames[i]
			at.Lines = append(at.Lines, l.caller(&trace.Caller{Function: f.Function, File: f.File, Line: uint64(f.Line)}))
		}
	}
	return at, false
}

// caller makes a line of a caller.
func (l *locator) caller(c *trace.Caller) stacks.Line {
	p := l.framer.Caller(c)
	line := stacks.Line{Function: cmp.Or(p.Function, sites.Unknown), File: p.File, Line: p.Line}
	if c.Function != p.Function {
		line.System = sites.Printable(c.Function)
	}
	return line
}

// inner removes the lines that the caller of a call has called, and returns how many whole
// locations these were.
func (l *locator) inner(at []stacks.Location, r *trace.Record) int {
	stack := &r.Call.Stack
	caller, frame := r.Call.Caller, -1
	if caller == (trace.Caller{}) && l.callers != nil {
		caller, frame = l.callers.Find(r.PID, stack)
	}
	if caller.Function == "" {
		return 0
	}
	line := l.caller(&caller)
	same := func(x stacks.Line) bool { return x.Function == line.Function }
	// Frames of operator new are already removed.
	if frame -= len(stack.Frames) - len(at); frame < 0 {
		frame = slices.IndexFunc(at, func(x stacks.Location) bool { return slices.ContainsFunc(x.Lines, same) })
		if frame < 0 && len(at[0].Lines) > 0 {
			return 0 // no place in the stack
		}
		frame = max(frame, 0)
	}
	if n := slices.IndexFunc(at[frame].Lines, same); n >= 0 {
		at[frame].Lines = at[frame].Lines[n:]
	} else {
		at[frame].Lines = []stacks.Line{line}
	}
	return frame
}

// locator returns one that asks r.
func (b *blockFlags) locator(r *resolve.Resolver, policy resolve.Policy) *locator {
	l := &locator{resolver: r, framer: b.framer(r), names: b.resolve}
	if b.resolve {
		l.callers = resolve.NewCallers(nil, r, policy.Wrappers())
	}
	return l
}
