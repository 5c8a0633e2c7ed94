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
	files    []bool // whether the texts of a stack's frames have files
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
	l.files = l.files[:0]
	for i := range stack.Frames {
		at, withFile := l.location(r.PID, stack, i)
		dst, l.files = append(dst, at), append(l.files, withFile)
	}
	if l.all {
		return dst
	}
	n := l.wrapped(dst[start:])
	dst = slices.Delete(dst, start, start+n)
	if l.files[n] {
		return dst
	}
	return slices.Delete(dst, start, start+l.inner(dst[start:], r))
}

// wrapped removes the lines of wrappers at the beginning of a stack, and returns how many
// whole locations these were.
func (l *locator) wrapped(all []stacks.Location) int {
	type line struct{ location, line int }
	var lines []line
	for i := range all {
		for n := range max(1, len(all[i].Lines)) {
			lines = append(lines, line{i, n})
		}
	}
	first := lines[l.framer.First(len(lines), func(i int) *sites.Frame {
		at := &all[lines[i].location]
		f := &sites.Frame{Place: sites.Place{Module: at.Mapping.Path}}
		if len(at.Lines) > 0 {
			x := &at.Lines[lines[i].line]
			f.Function, f.File = x.Function, x.File
		}
		return f
	})]
	all[first.location].Lines = all[first.location].Lines[first.line:]
	return first.location
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

// newLocator returns one that asks r.
func newLocator(n *nameFlags, r *resolve.Resolver) *locator {
	l := &locator{resolver: r, framer: n.framer(r), names: n.wanted(), all: n.list.Empty()}
	if l.names {
		l.callers = resolve.NewCallers(nil, r, n.list)
	}
	return l
}
