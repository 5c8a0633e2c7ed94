package plan

import (
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
)

// hasOwnOperators says whether operators of a file may have the allocation in them:
// it has an allocator that is traced under the names of C. Those of other files lead
// to one.
func (p *Plan) hasOwnOperators(file process.FileID) bool {
	return slices.ContainsFunc(p.allocators, func(a Allocator) bool {
		return a.Traced && a.Prefix == "" && a.lib.id() == file
	})
}

// ownOperators lists the C++ operators that an allocator's own library defines, as
// allocators do that replace all of it, and statically linked programs. One that is
// the code of a function of C is an alias of that. Those of other functions, as
// tc_free_sized, become aliases of the operator, which is what programs call; it
// returns what is left of the functions.
func (p *Plan) ownOperators(lib *library, functions []Function) (rest, own []Function) {
	own = operatorsIn(OperatorModule(p.Target.Machine.Word), lib.function)
	for _, f := range functions {
		at := slices.IndexFunc(own, func(op Function) bool { return op.addr == f.addr })
		switch {
		case at < 0:
		case isOfC(f.Name):
			f.Aliases = append(append(f.Aliases, own[at].Name), own[at].Aliases...)
			own = slices.Delete(own, at, at+1)
		default:
			own[at].Aliases = append(append(own[at].Aliases, f.Name), f.Aliases...)
			continue
		}
		rest = append(rest, f)
	}
	wraps := slices.ContainsFunc(functions, func(f Function) bool { return f.wraps })
	for i := range own {
		own[i].wraps = wraps
	}
	return rest, own
}

// isOfC says whether a function is one of the C library's allocator, by its name.
func isOfC(name string) bool {
	return slices.ContainsFunc(MemoryModule, func(r Row) bool { return r.Symbol == name })
}

// sortOperators divides the operators of the allocator's library. Those that always
// end in another function that is traced give it their name; their probes are only
// worth it if names are wanted. Others do the work themselves, on some way at least,
// and count: they get probes on their return instructions, since they may throw.
func (p *Plan) sortOperators(c *code, functions, own []Function) (counting, naming []Function) {
	if len(own) == 0 {
		return nil, nil
	}
	w := newOperatorFlow(c, functions, own)
	for _, op := range own {
		counts, err := w.counts(&op)
		switch {
		case err != nil:
			p.Options.Warnf("calls of %s in %s are not recorded: %v", op.Name, c.lib.mapping.Path, err)
		case counts:
			counting = append(counting, op)
		default:
			naming = append(naming, op)
		}
	}
	return counting, naming
}

// operatorFlow follows the code of operators.
type operatorFlow struct {
	code      *code
	index     *cfi.Index        // may be nil
	rows      map[string]*Row   // traced functions and operators, by name
	functions map[string]uint64 // of the library, that are called through the GOT
	exits     map[uint64]bool   // return instructions that were given to an operator
}

func newOperatorFlow(c *code, functions, own []Function) *operatorFlow {
	w := &operatorFlow{code: c, index: c.frames(), rows: map[string]*Row{}, functions: map[string]uint64{}, exits: map[uint64]bool{}}
	for _, all := range [][]Function{functions, own} {
		for i := range all {
			w.rows[all[i].Name] = all[i].row
		}
	}
	return w
}

// flow describes the operator's code.
func (w *operatorFlow) flow(op *Function, stop func(name string, call bool) bool) site.Flow {
	return site.Flow{
		Entry: op.addr, Code: w.code.text, Base: w.code.base,
		Bounds: func(addr uint64) (uint64, bool) {
			if w.index == nil {
				return 0, false
			}
			fde, ok := w.index.Find(addr)
			if !ok {
				return 0, false
			}
			return fde.End, true
		},
		Slot: w.slot,
		Stop: func(target uint64, call bool) bool {
			name, ok := w.code.target(target)
			return ok && name != op.Name && stop(name, call)
		},
	}
}

// slot returns the function of the library that a pointer in its GOT is for. That
// another library's function of that name takes its place is not expected of names
// that are the allocator's own.
func (w *operatorFlow) slot(addr uint64) (uint64, bool) {
	name, ok := w.code.slots[addr]
	if !ok {
		return 0, false
	}
	function, known := w.functions[name]
	if !known {
		if sym, ok := w.code.lib.function(name); ok {
			function = sym.Addr
		}
		w.functions[name] = function
	}
	return function, function != 0
}

// counts says whether an operator counts as a function of its own, and finds its ends
// then. It does not if every way through it leads through a function that is traced
// and does what the operator is for; deleting nothing is no way. But a new counts
// also if the code that calls that function is another's, to which the operator
// jumps: it could not give its name.
func (w *operatorFlow) counts(op *Function) (bool, error) {
	frees := op.row.operation == opFree
	f := w.flow(op, func(name string, _ bool) bool {
		return (w.rows[name].operation == opFree) == frees
	})
	if frees {
		f.Entry = w.behindNull(op)
	}
	found, err := site.Returns(w.code.sites(), f)
	always := err == nil && found.Stopped && len(found.Returns) == 0
	foreign := slices.ContainsFunc(found.Calls, func(pc uint64) bool { return pc-op.addr >= op.size })
	switch {
	case always && (frees || !foreign):
		return false, nil
	case frees && found.Stopped:
		return false, errSometimes
	case frees && !op.wraps:
		return true, nil
	}
	return true, w.findExits(op) // also of a delete that leads to that of another allocator
}

// behindNull returns where a delete comes if it has something to delete.
func (w *operatorFlow) behindNull(op *Function) uint64 {
	f, err := w.code.describe(op)
	if err != nil {
		return op.addr
	}
	addr, err := site.AfterNullCheck(w.code.sites(), f)
	if err != nil {
		return op.addr
	}
	return addr
}

// findExits finds the return instructions of an operator, and its jumps to other
// functions that are traced, which have probes of their own.
func (w *operatorFlow) findExits(op *Function) error {
	c := w.code
	found, err := site.Returns(c.sites(), w.flow(op, func(name string, call bool) bool {
		return !call && w.rows[name].operation != opFree
	}))
	if err != nil {
		return err
	}
	if len(found.Conds) > 0 {
		return fmt.Errorf("its jump at %#x leads to a function that is traced, or goes on", found.Conds[0])
	}
	op.exits, op.exitCost = true, found.Cost
	if op.Exits, err = w.probes(op, found.Returns); err != nil {
		return err
	}
	op.Jumps, err = w.probes(op, found.Jumps)
	return err
}

// probes returns probes on ends of an operator, but for those in code that it shares
// with one before it.
func (w *operatorFlow) probes(op *Function, at []uint64) ([]Probe, error) {
	var out []Probe
	for _, addr := range at {
		probe, ok := w.code.probe(op.Name, addr)
		if !ok {
			return nil, fmt.Errorf("its end at %#x is not in the file", addr)
		}
		if w.exits[addr] {
			continue
		}
		w.exits[addr] = true
		out = append(out, probe)
	}
	return out, nil
}

// errSometimes refuses a delete that frees by itself on some ways and goes on to
// another function that is traced on others, whose calls would count twice.
var errSometimes = errors.New("it leads to a function that is traced on some ways only")

// exitProbes lists the probes on return instructions, and on jumps.
func (p *Plan) exitProbes() (exits, jumps []Probe) {
	for i := range p.functions {
		exits = append(exits, p.functions[i].Exits...)
		jumps = append(jumps, p.functions[i].Jumps...)
	}
	return exits, jumps
}
