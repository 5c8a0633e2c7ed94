package naming

import (
	"path"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/shortname"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// Frames names frames of a process for people.
type Frames struct {
	resolver *resolve.Resolver
	framer   sites.Framer
	pid      int32
}

// NewFrames returns the frames of a process with this root.
func NewFrames(pid int, root *Root) *Frames {
	f := &Frames{pid: int32(pid), resolver: root.named()}
	of := func() *resolve.Process { return f.resolver.Process(f.pid) }
	f.framer = sites.Framer{
		Name:     func(_ int32, addr uint64) string { return of().Text(addr) },
		Module:   func(_ int32, addr uint64) string { return of().Module(addr) },
		Position: func(_ int32, addr uint64) string { return of().Position(addr) },
		Inlined:  true,
	}
	return f
}

// Observe takes records about mappings.
func (f *Frames) Observe(rec *trace.Record) { f.resolver.Observe(rec) }

// Unwrapped returns the addresses of a stack without those at its beginning that are only in
// wrappers of allocators.
func (f *Frames) Unwrapped(stack []uint64) []uint64 {
	if len(stack) == 0 {
		return stack
	}
	frames := f.framer.Append(nil, f.pid, &trace.Stack{Frames: stack}, &trace.Caller{}, 0)
	for i, addr := range stack {
		if addr == frames[0].Addr {
			return stack[i:]
		}
	}
	return stack
}

// Text returns the function at an address, with its line or its file, and the functions that it is
// inlined into. Wrappers that are inlined are left out.
func (f *Frames) Text(addr uint64) string {
	frames := f.framer.Append(nil, f.pid, &trace.Stack{Frames: []uint64{addr}}, &trace.Caller{}, 0)
	texts := make([]string, len(frames))
	for i := range frames {
		frames[i].Function, frames[i].File = shortname.Of(frames[i].Function), path.Base(frames[i].File)
		if frames[i].File == "." {
			frames[i].File = ""
		}
		texts[i] = frames[i].String()
	}
	return strings.Join(texts, ", inlined by ")
}
