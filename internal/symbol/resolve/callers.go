package resolve

import (
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/lines"
	"rtrace-bpf/internal/wrapper"
	"rtrace-bpf/trace"
)

// Callers passes records on and adds to each call with a stack the place in the program
// that made the call, unless the record has one. A place is a function, as the linker knows
// it, and a file and line from debugging information. Unknown parts are left empty.
//
// A function without a name, because its file is stripped, is not replaced by its caller:
// that would be another place.
//
// Where the files give no answer, the texts of the frames are used, if the stack has some.
type Callers struct {
	from     trace.Reader
	resolver *Resolver     // if nil, only texts are used
	wrappers *wrapper.List // whose frames are not callers

	slots  []siteSlot
	sites  map[siteKey]*site
	texts  map[string]*site
	bytes  int // bytes that sites and texts occupy
	frames []lines.Frame
}

var _ trace.Reader = (*Callers)(nil)

// maxSites bounds the bytes that cached sites occupy. When they exceed it, all are dropped.
const maxSites = 64 << 20

// site is what is known about a return address.
type site struct {
	caller trace.Caller // of the frame that the policy selects
	counts bool         // the policy selects a frame
	known  bool         // a function or a library was found
	inner  trace.Caller // the innermost frame that is no function of an allocator
	found  bool         // inner was looked for
	other  bool         // and was found
}

// siteKey is an address in a file.
type siteKey struct {
	module *module
	addr   uint64
}

// siteSlot is a cached answer. Addresses with the same hash replace each other.
type siteSlot struct {
	addr    uint64
	process *Process
	site    *site
	version uint32
}

// nowhere is the site of an address that no mapping covers.
var nowhere = &site{counts: true, found: true, other: true}

// NewCallers returns a Callers that reads from from and resolves addresses with r, which
// may be nil. It passes the mappings of the trace to r. The caller is the innermost frame
// that is not in wrappers.
func NewCallers(from trace.Reader, r *Resolver, wrappers *wrapper.List) *Callers {
	c := &Callers{from: from, resolver: r, wrappers: wrappers, texts: make(map[string]*site)}
	if r != nil {
		c.slots, c.sites = make([]siteSlot, 1<<cacheBits), make(map[siteKey]*site)
	}
	return c
}

// ReadRecord reads the next record. Errors are those of the underlying reader.
func (c *Callers) ReadRecord(rec *trace.Record) error {
	if err := c.from.ReadRecord(rec); err != nil {
		return err
	}
	switch {
	case rec.Kind != trace.KindCall:
		if c.resolver != nil {
			c.resolver.Observe(rec)
		}
	case rec.Call.Caller == trace.Caller{}:
		rec.Call.Caller, _ = c.Find(rec.PID, &rec.Call.Stack)
	}
	return nil
}

// Caller returns the place that made a call of a process, given the call's stack. It keeps
// nothing of the stack.
func (c *Callers) Caller(pid int32, stack *trace.Stack) trace.Caller {
	caller, _ := c.Find(pid, stack)
	return caller
}

// Find returns the same as Caller, and the index of the frame of that place, or -1 if there
// is none.
func (c *Callers) Find(pid int32, stack *trace.Stack) (caller trace.Caller, frame int) {
	if len(stack.Frames) == 0 {
		return trace.Caller{}, -1
	}
	var p *Process
	if c.resolver != nil {
		p = c.resolver.Process(pid)
	}
	for i := range stack.Frames {
		if s := c.site(p, stack, i); s.counts {
			return s.caller, i
		}
	}
	for i := range stack.Frames {
		s := c.site(p, stack, i)
		if !s.found {
			c.findInner(p, stack.Frames[i], s)
		}
		if s.other {
			return s.inner, i
		}
	}
	return trace.Caller{}, -1
}

// site returns what is known about a frame.
func (c *Callers) site(p *Process, stack *trace.Stack, i int) *site {
	s := nowhere
	if p != nil {
		s = c.address(p, stack.Frames[i])
	}
	if !s.known && i < len(stack.Names) && stack.Names[i] != "" {
		return c.text(stack.Names[i])
	}
	return s
}

// address returns what the files give for a return address.
func (c *Callers) address(p *Process, addr uint64) *site {
	slot := &c.slots[slotOf(addr)]
	if slot.addr == addr && slot.process == p && slot.version == c.resolver.version {
		return slot.site
	}
	s := c.locate(p, addr)
	*slot = siteSlot{addr, p, s, c.resolver.version}
	return s
}

func (c *Callers) locate(p *Process, addr uint64) *site {
	m, f, at := p.locate(addr - 1)
	if m == nil {
		return nowhere
	}
	if f == nil {
		at = 0 // only the file's name is known
	}
	key := siteKey{m.module, at}
	if s, ok := c.sites[key]; ok {
		return s
	}
	s := new(site)
	switch {
	case c.wrappers.Has(&wrapper.Frame{Module: m.module.path}):
		s.known = true
	case f == nil:
		s.counts, s.found, s.other = true, true, true
	default:
		c.choose(s, m.module.path, c.resolver.frames(c.frames[:0], m.module, f, at))
	}
	c.keep(s, 0)
	c.sites[key] = s
	return s
}

// choose selects the frame that counts, of those at an address in a file.
func (c *Callers) choose(s *site, file string, frames []lines.Frame) {
	c.frames = frames
	for i := range frames {
		f := &frames[i]
		source, _ := symbol.Source(f.Function)
		if c.wrappers.Has(&wrapper.Frame{Function: source, Namespace: f.Namespace, File: f.File, Module: file}) {
			s.known = true
			continue
		}
		s.counts, s.caller = true, callerOf(f)
		s.known = s.known || f.Function != ""
		return
	}
}

func callerOf(f *lines.Frame) trace.Caller {
	return trace.Caller{Function: f.Function, File: f.File, Line: uint64(f.Line)}
}

// findInner looks for the innermost frame at an address that is no function of an
// allocator. It needs the debugging information of libraries, which is otherwise not read.
func (c *Callers) findInner(p *Process, addr uint64, s *site) {
	s.found = true
	m, f, at := p.locate(addr - 1)
	if m == nil || f == nil {
		return
	}
	c.frames = c.resolver.frames(c.frames[:0], m.module, f, at)
	for i := range c.frames {
		if f := &c.frames[i]; !wrapper.IsAllocator(f.Function) {
			s.inner, s.other = callerOf(f), true
			return
		}
	}
}

// text returns what the text of a frame contains.
func (c *Callers) text(text string) *site {
	if s, ok := c.texts[text]; ok {
		return s
	}
	s := &site{known: true, found: true}
	for rest := text; rest != "" && !s.counts; {
		var part string
		part, rest = frametext.Outer(rest)
		p := parseText(part)
		if !s.other && p.caller.Function != "" && !wrapper.IsAllocator(p.caller.Function) {
			s.inner, s.other = p.caller, true
		}
		if !c.wrappers.Has(&wrapper.Frame{Function: p.caller.Function, File: p.caller.File, Module: p.module}) {
			s.counts, s.caller = true, p.caller
		}
	}
	c.keep(s, len(text))
	c.texts[strings.Clone(text)] = s
	return s
}

// keep counts the memory of s and drops all other sites if the total is too large.
func (c *Callers) keep(s *site, more int) {
	const overhead = 256 // of a site in its map
	n := overhead + more + len(s.caller.Function) + len(s.caller.File)
	if c.bytes += n; c.bytes > maxSites {
		clear(c.slots)
		clear(c.sites)
		clear(c.texts)
		c.bytes = n
	}
}
