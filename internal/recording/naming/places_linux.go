package naming

import (
	"fmt"
	"path"

	"rtrace-bpf/internal/symbol"
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
}

// mostCallers is how many functions Callers has at most.
const mostCallers = 8

// Places names the places of call sites of a process. Reading debugging information may take
// seconds, so its user calls it where nothing waits.
type Places struct {
	root     *Root
	resolver *resolve.Resolver
	callers  *resolve.Callers
}

// OpenPlaces returns the places of a process, which it keeps readable until Close.
func OpenPlaces(pid int) *Places {
	root := OpenRoot(pid)
	resolver := root.withLines()
	return &Places{root: root, resolver: resolver, callers: resolve.NewCallers(nil, resolver, resolve.Program)}
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
	place := Place{Stack: make([]string, len(stack.Frames))}
	for i, addr := range stack.Frames {
		place.Stack[i] = text(of, addr)
	}
	caller, n := p.callers.Find(pid, stack)
	n = max(n, 0)
	place.Library = of.Module(stack.Frames[n])
	place.Function, _ = symbol.Source(caller.Function)
	if place.Function == "" {
		place.Function = offset(of, stack.Frames[n])
	}
	for _, addr := range stack.Frames[n+1 : min(n+1+mostCallers, len(stack.Frames))] {
		name, _, _ := of.Name(addr)
		if name == "" {
			name = offset(of, addr)
		}
		place.Callers = append(place.Callers, name)
	}
	if caller.File != "" {
		place.File, place.Line = caller.File, int(caller.Line)
	}
	return place
}

// text returns a frame. One without a name has its offset in the file.
func text(of *resolve.Process, addr uint64) string {
	if name, _, ok := of.Name(addr); !ok || name == "" {
		return offset(of, addr)
	}
	return of.Text(addr)
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
