package plan

import (
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/tracer/site"
)

// ownOperators lists the C++ operators that the file of an allocator defines, which static
// programs have, and allocators that replace malloc and new. An operator with the address
// of a function of C becomes an alias of that function. An operator with the address of
// another function, such as tc_free_sized, keeps its name, which programs call, and the
// function becomes its alias. word is the bytes of a word. rest is the functions without those that became aliases.
func ownOperators(lib *library, word uint64, functions []Function) (rest, own []Function) {
	own = operatorsIn(OperatorModule(word), lib.function)
	for _, f := range functions {
		at := slices.IndexFunc(own, func(op Function) bool { return op.symbol.Addr == f.symbol.Addr })
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

// isOfC reports whether name is a function of the C library's allocator.
func isOfC(name string) bool {
	return slices.ContainsFunc(MemoryModule, func(r Row) bool { return r.Symbol == name })
}

// sortOperators divides the operators of an allocator's file. Operators that always reach a
// traced function give its calls their name; they need probes only for that. Operators that
// do the work themselves, on some path at least, count as functions of their own; they get
// probes on their return instructions instead of a return probe, because they may throw.
func sortOperators(c *code, functions, own []Function, warn func(format string, args ...any)) (counting, naming []Function) {
	if len(own) == 0 {
		return nil, nil
	}
	w := newOperatorFlow(c, functions, own)
	for _, op := range own {
		counts, err := w.counts(&op)
		switch {
		case err != nil:
			warn("calls of %s in %s are not recorded: %v", op.Name, c.lib.mapping.Path, err)
		case counts:
			counting = append(counting, op)
		default:
			naming = append(naming, op)
		}
	}
	return counting, naming
}

// ends are the probes where a C++ operator that counts as a function ends. They take the
// place of a return probe, which would kill a program that throws through it.
type ends struct {
	returns []Probe   // on return instructions; those that several functions share belong to one
	jumps   []Probe   // on jumps to other traced functions
	cost    site.Cost // of the most expensive of the returns
}

// operatorFlow follows the code of operators.
type operatorFlow struct {
	code      *code
	index     *cfi.Index        // may be nil
	rows      map[string]*Row   // traced functions and operators, by name
	functions map[string]uint64 // addresses of functions that are called through the GOT; 0: not in this file
	exits     map[uint64]bool   // ends that an operator already has probes on
}

func newOperatorFlow(c *code, functions, own []Function) *operatorFlow {
	w := &operatorFlow{code: c, index: c.tracedFrames(), rows: map[string]*Row{}, functions: map[string]uint64{}, exits: map[uint64]bool{}}
	for _, all := range [][]Function{functions, own} {
		for i := range all {
			w.rows[all[i].Name] = all[i].row
		}
	}
	return w
}

// flow describes the operator's code for site.Returns. stop reports whether a path ends at a
// jump or a call to the traced function name.
func (w *operatorFlow) flow(op *Function, stop func(name string, call bool) bool) site.Flow {
	return site.Flow{
		Entry: op.symbol.Addr, Code: w.code.text.bytes, Base: w.code.text.base,
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
			name, ok := w.code.links.target(target)
			return ok && name != op.Name && stop(name, call)
		},
	}
}

// slot returns the address of the function that a pointer in the GOT leads to, if the file
// defines it. It assumes that no other library's function of that name takes its place,
// because these names are the allocator's own.
func (w *operatorFlow) slot(addr uint64) (uint64, bool) {
	name, ok := w.code.links.slots[addr]
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

// counts reports whether an operator counts as a function of its own, and if so finds its
// ends. It does not count if every path through it reaches a traced function that does the
// operator's work; the path of a delete of null is left out. An operator new counts all the
// same if another function, which it jumps to, calls the traced function: then it could not
// give the call its name.
func (w *operatorFlow) counts(op *Function) (bool, error) {
	frees := op.row.operation == opFree
	f := w.flow(op, func(name string, _ bool) bool {
		return (w.rows[name].operation == opFree) == frees
	})
	if frees {
		f.Entry = w.afterNull(op)
	}
	found, err := site.Returns(w.code.sites(), f)
	always := err == nil && found.Stopped && len(found.Returns) == 0
	foreign := slices.ContainsFunc(found.Calls, func(pc uint64) bool { return pc-op.symbol.Addr >= op.symbol.Size })
	switch {
	case always && (frees || !foreign):
		return false, nil
	case frees && found.Stopped:
		return false, errSometimes
	case frees && !op.wraps:
		return true, nil
	}
	return true, w.findExits(op) // a delete comes here if it wraps another allocator's
}

// afterNull returns the address that a delete reaches if its block is not null.
func (w *operatorFlow) afterNull(op *Function) uint64 {
	f, err := w.code.describe(op)
	if err != nil {
		return op.symbol.Addr
	}
	addr, err := site.AfterNullCheck(w.code.sites(), f)
	if err != nil {
		return op.symbol.Addr
	}
	return addr
}

// findExits sets the probes on the return instructions of an operator, and on its jumps to
// traced functions that allocate, from which the call goes on as that function's.
func (w *operatorFlow) findExits(op *Function) error {
	c := w.code
	found, err := site.Returns(c.sites(), w.flow(op, func(name string, call bool) bool {
		return !call && w.rows[name].operation != opFree
	}))
	if err != nil {
		return err
	}
	if len(found.Conds) > 0 {
		return fmt.Errorf("its conditional jump at %#x leads to a traced function", found.Conds[0])
	}
	op.ends = &ends{cost: found.Cost}
	if op.ends.returns, err = w.probes(op, found.Returns); err != nil {
		return err
	}
	op.ends.jumps, err = w.probes(op, found.Jumps)
	return err
}

// probes returns probes on the ends of an operator at the addresses in at. It leaves out ends
// that already have a probe for another operator, which shares the code.
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

// errSometimes is the error for a delete that frees the block itself on some paths and calls
// a traced function on others: those calls would count twice.
var errSometimes = errors.New("only some paths through it lead to a traced function")
