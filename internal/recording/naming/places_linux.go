package naming

import (
	"fmt"
	"path"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// Place is where a call was made, for people.
type Place struct {
	Function string   // as in the source; without a name, the file and the offset in it
	File     string   // of the source, as the compiler recorded it; empty if it is unknown
	Line     int      // 0 if it is unknown
	Library  string   // path of the program or library; empty if nothing is mapped there
	Callers  []string // functions that led to it, the innermost first, a few at most
	Stack    []string // all frames, the innermost first
	Frames   []Frame  // the same without the functions that others are inlined into
	At       int      // the number of the frame of Function
}

// Frame is a return address.
type Frame struct {
	Function string // the innermost one that is active
	Line     string // its file and line, such as "main.c:12"; empty if they are unknown
	Offset   string // distinguishes it from other addresses: "main+0x9f", or the file and the offset in it
}

// mostCallers is how many functions Callers has at most.
const mostCallers = 8

// Places names the places of call sites of a process. Reading debugging information may take
// seconds, so its user calls it where nothing waits.
type Places struct {
	root     *Root
	resolver *resolve.Resolver
	callers  *resolve.Callers
	frames   []lines.Frame // of the last address
}

// OpenPlaces returns the places of a process, which it keeps readable until Close.
func OpenPlaces(pid int) *Places {
	root := OpenRoot(pid)
	resolver := root.withLines()
	return &Places{root: root, resolver: resolver, callers: resolve.NewCallers(nil, resolver, resolve.Program.Wrappers())}
}

// Close releases the files that the process sees.
func (p *Places) Close() { p.root.Close() }

// Observe takes records about mappings.
func (p *Places) Observe(rec *trace.Record) { p.resolver.Observe(rec) }

// Find returns the place of a call with the given stack: the innermost frame that belongs to
// the program and its libraries, as [resolve.Program] selects it.
func (p *Places) Find(pid int32, stack *trace.Stack) Place {
	if len(stack.Frames) == 0 {
		return Place{Function: "no stack was recorded"}
	}
	of := p.resolver.Process(pid)
	caller, n := p.callers.Find(pid, stack)
	n = max(n, 0)
	place := Place{Library: of.Module(stack.Frames[n]), File: caller.File, Line: int(caller.Line)}
	place.Function, _ = symbol.Source(caller.Function)
	if place.Function == "" {
		place.Function = offset(of, stack.Frames[n])
	}
	place.At = n
	found := false
	for i, addr := range stack.Frames {
		active := p.functions(of, addr)
		place.Frames = append(place.Frames, Frame{active[0].name, active[0].line, position(of, addr)})
		for _, f := range active {
			place.Stack = append(place.Stack, f.text)
			switch {
			case found && len(place.Callers) < mostCallers:
				place.Callers = append(place.Callers, f.name)
			case i == n && f.name == place.Function:
				found = true
			}
		}
		found = found || i == n
	}
	return place
}

// active is a function that is active at a frame.
type active struct{ name, line, text string }

// functions returns the functions that are active at a frame, the innermost first: each is
// inlined into the next one.
func (p *Places) functions(of *resolve.Process, addr uint64) (all []active) {
	module := of.Module(addr)
	p.frames = of.Frames(p.frames[:0], addr)
	for i := range p.frames {
		f := &p.frames[i]
		if f.Function == "" {
			continue
		}
		name, _ := symbol.Source(f.Function)
		text, line := name, ""
		if f.File != "" && f.Line > 0 {
			line = fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
			text += " (" + line + ")"
		}
		if i < len(p.frames)-1 {
			text += " inlined"
		} else {
			text += " from " + module
		}
		all = append(all, active{name, line, text})
	}
	if len(all) > 0 {
		return all
	}
	name, _, _ := of.Name(addr)
	if name == "" {
		name = offset(of, addr)
	}
	return []active{{name, "", name}}
}

// Locations returns the frames of a stack as profiles have them, the innermost first.
func (p *Places) Locations(pid int32, stack *trace.Stack) []stacks.Location {
	of := p.resolver.Process(pid)
	all := make([]stacks.Location, len(stack.Frames))
	for i, addr := range stack.Frames {
		l := &all[i]
		l.Addr = addr
		if m, ok := of.Mapping(addr); ok {
			l.Mapping = stacks.Mapping{Start: m.Start, End: m.End, Offset: m.Offset, Placed: m.Placed, Path: m.Path, BuildID: m.BuildID}
		}
		for _, f := range of.Frames(nil, addr) {
			name, _ := symbol.Source(f.Function)
			l.Lines = append(l.Lines, stacks.Line{Function: name, System: f.Function, File: f.File, Line: uint64(f.Line)})
		}
	}
	return all
}

// position returns a function and an offset in it, or the result of offset.
func position(of *resolve.Process, addr uint64) string {
	if name, bytes, ok := of.Offset(addr); ok {
		source, _ := symbol.Source(name)
		return fmt.Sprintf("%s+%#x", source, bytes)
	}
	return offset(of, addr)
}

// offset returns the name of a file and an offset in it, which is the same in every run, or
// the address if nothing is mapped there.
func offset(of *resolve.Process, addr uint64) string {
	m, ok := of.Mapping(addr)
	if !ok {
		return fmt.Sprintf("%#x", addr)
	}
	return fmt.Sprintf("%s+%#x", path.Base(m.Path), addr-m.Start+m.Offset)
}
