package modules

import (
	"slices"
	"strings"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// Recorder derives allocations and frees from calls. It must get the calls of all threads in the
// order of their times.
type Recorder struct {
	groups    []group
	modules   []*Module
	resources []trace.Resource
	first     uint32 // number of the first resource
	narrow    bool
	pid       int // of the process
	measure   func(addr uint64, unit int) (uint64, bool)

	// ending holds what open calls will have freed when they return. Another thread may get the
	// same resource before that return is seen.
	ending map[key][]*end
	calls  map[callKey][]*call
	fds    descriptors
	state  map[*Module]any // state of a module

	mappings map[*Module]*regions
	pasts    map[*Module]pasts
	objects  lastObjects
}

// key identifies a resource.
type key struct {
	resource uint32
	id       uint64
}

// callKey identifies an open call.
type callKey struct {
	tid      uint32
	slot     uint64
	function int // its number: a function may end in a jump to another one
}

// Process describes the process whose calls a Recorder gets.
type Process struct {
	PID    int
	Narrow bool                // a 32-bit program on a 64-bit machine
	Open   map[uint32]string   // the descriptors that were open before the trace, with their kinds, as returned by the function Kind
	Kind   func(fd int) string // returns what a descriptor is now; "" if it is not open
	// Length returns the number of characters, of unit bytes each, of the text that is at an
	// address now.
	Length func(addr uint64, unit int) (uint64, bool)
}

// NewRecorder returns a Recorder for modules. Their resources are numbered from first.
func NewRecorder(selected []*Module, first uint32, p Process) *Recorder {
	r := &Recorder{
		groups: groups(selected), modules: selected, first: first, narrow: p.Narrow, pid: p.PID, measure: p.Length,
		fds: descriptors{now: p.Kind},
	}
	r.fds.begin(p.Open)
	for _, m := range selected {
		for _, x := range m.Resources {
			x.ID = first + uint32(len(r.resources))
			r.resources = append(r.resources, x)
		}
	}
	r.forget()
	return r
}

// Resources returns the resources of all modules.
func (r *Recorder) Resources() []trace.Resource { return r.resources }

// number returns the number of a module's resource.
func (r *Recorder) number(m *Module, name string) uint32 {
	at := r.first
	for _, other := range r.modules {
		if other == m {
			return at + uint32(slices.IndexFunc(m.Resources, func(x trace.Resource) bool { return x.Type == name }))
		}
		at += uint32(len(other.Resources))
	}
	return 0
}

// Executed records that the process has executed another program.
func (r *Recorder) Executed() {
	r.forget()
	r.fds.executed()
}

// forget drops all state but the descriptors.
func (r *Recorder) forget() {
	r.ending, r.calls, r.state = map[key][]*end{}, map[callKey][]*call{}, map[*Module]any{}
	r.mappings, r.pasts, r.objects = map[*Module]*regions{}, map[*Module]pasts{}, lastObjects{}
}

// Caller is who makes a call.
type Caller struct {
	Allocator bool // a traced allocator
	Inner     bool // the function's own library, as part of another call or for itself
}

// Enter processes the entry of a call, and Leave its return. A call of a function whose return is
// not recorded counts at its entry: Enter returns its effects.
func (r *Recorder) Enter(e *functions.Event, by Caller) (acts []Act) {
	entry := *e
	at := callKey{e.TID, e.Slot, e.Function.Module}
	var open []*call
	for _, k := range r.groups[e.Function.Module-1].rows {
		if by.Allocator && k.module.ownOnly || by.Inner && !k.everywhere {
			continue
		}
		c := &call{Recorder: r, row: k.row, module: k.module, function: k.called(e.Function.Symbol), entry: &entry}
		switch {
		case k.first != nil && !k.first(c):
		case e.Function.Result != 0:
			open = append(open, c)
		case k.ok == nil || k.ok(c):
			c.begin()
			c.run()
			acts = append(acts, c.acts...)
		}
	}
	if len(open) > 0 {
		r.open(at, open)
	}
	return acts
}

// open stores calls that will return.
func (r *Recorder) open(at callKey, calls []*call) {
	for _, c := range r.calls[at] { // a call that has never returned
		r.settle(c)
	}
	r.calls[at] = calls
	for _, c := range calls {
		c.begin()
		for _, x := range c.ends {
			r.ending[x.key] = append(r.ending[x.key], x)
		}
	}
}

// called returns the name of a function in its source. The C library's names for checked calls
// are replaced by the plain ones.
func (r *row) called(symbol string) string {
	if r.name != "" {
		return r.name
	}
	if inner, ok := strings.CutPrefix(symbol, "__"); ok {
		return strings.TrimSuffix(strings.TrimSuffix(inner, "_2"), "_chk")
	}
	return symbol
}

// Leave processes the return of a call and returns the call's effects.
func (r *Recorder) Leave(e *functions.Event) (acts []Act) {
	at := callKey{e.TID, e.Slot, e.Function.Module}
	open := r.calls[at]
	delete(r.calls, at)
	for _, c := range open {
		c.entry, c.exit = e.Entry, e
		if c.row.ok == nil || c.row.ok(c) {
			c.run()
		}
		r.settle(c)
		acts = append(acts, c.acts...)
	}
	return acts
}

// end is a resource that a call ends.
type end struct {
	key
	call *call
	from *freeing // nil: of row.ends
	done bool     // recorded already
}

// begin finds what the call will have freed, from what is known at its entry.
func (c *call) begin() {
	for i := range c.row.frees {
		f := &c.row.frees[i]
		if f.only == nil || f.only(c) {
			c.ends = append(c.ends, &end{key: key{c.number(c.module, f.resource), f.id(c)}, call: c, from: f})
		}
	}
	if c.row.ends != nil {
		for _, k := range c.row.ends(c) {
			c.ends = append(c.ends, &end{key: k, call: c})
		}
	}
}

// run applies the effects of the call.
func (c *call) run() {
	for _, e := range c.ends {
		if !e.done {
			c.acts = append(c.acts, c.freed(e))
		}
	}
	for _, do := range c.row.does {
		do(c)
	}
}

// freed returns the record of an end.
func (c *call) freed(e *end) Act {
	a := Act{Op: trace.OpFree, Function: c.function, Resource: e.resource, ID: e.id}
	switch {
	case e.from == nil:
		a.Args = c.describe(c.row.detail)
	case e.from.args != nil:
		a.Args = c.describe(e.from.args(c))
	}
	return a
}

// settle removes what an open call was going to free.
func (r *Recorder) settle(c *call) {
	for _, e := range c.ends {
		left := slices.DeleteFunc(r.ending[e.key], func(x *end) bool { return x == e })
		if len(left) == 0 {
			delete(r.ending, e.key)
		} else {
			r.ending[e.key] = left
		}
	}
}

// overtake records the end of a resource that another open call is freeing, because the resource
// was allocated again.
func (r *Recorder) overtake(k key, by *call) {
	for _, x := range r.ending[k] {
		if x.call != by && !x.done {
			x.done = true
			by.acts = append(by.acts, x.call.freed(x))
			return
		}
	}
}

// Forget drops the open calls of a thread that has ended.
func (r *Recorder) Forget(tid uint32) {
	delete(r.objects, tid)
	for _, p := range r.pasts {
		p.forget(tid)
	}
	for at, open := range r.calls {
		if at.tid != tid {
			continue
		}
		delete(r.calls, at)
		for _, c := range open {
			r.settle(c)
		}
	}
}
