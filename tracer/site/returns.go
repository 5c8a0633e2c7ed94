package site

import (
	"errors"
	"fmt"
	"slices"
)

// maxFlow is how many instructions of a function [Returns] follows, including those of the
// functions that it jumps to. mimalloc's slowest path has some hundred.
const maxFlow = 1 << 13

// ErrFlow is returned by [Returns] if it cannot follow the code.
var ErrFlow = errors.New("the code cannot be followed")

// Flow describes a function whose exits are searched.
type Flow struct {
	Entry uint64
	Code  []byte // of the whole library; only read
	Base  uint64 // virtual address of Code[0]

	// Bounds returns the end of the function, or of the part of a function, that contains addr. A
	// path that runs past that end does not exist: it ends in a call that does not return. If
	// Bounds is nil or returns false, the end is unknown; there may then be too many returns.
	Bounds func(addr uint64) (end uint64, ok bool)

	// Slot returns the function of the library to which the pointer at addr, an entry of the GOT,
	// leads. If Slot is nil, none is known.
	Slot func(addr uint64) (function uint64, ok bool)

	// Stop reports whether a path need not be followed beyond a jump or a call to target. If Stop
	// is nil, all paths are followed.
	Stop func(target uint64, call bool) bool
}

// Exits describes where a function returns to its caller.
type Exits struct {
	Returns []uint64 // addresses of return instructions, ascending
	Cost    Cost     // of the most expensive of them
	Stopped bool     // a path has met Flow.Stop
	Jumps   []uint64 // addresses of the jumps that met it, ascending
	Conds   []uint64 // addresses of the conditional ones, ascending
	Calls   []uint64 // addresses of the calls that met it, ascending
}

// Returns finds all return instructions in which a call of the function can end, including those
// of functions of the same library that it jumps to. At each of them, the stack pointer has the
// value that it had at the function's entry. Paths that end in a trap, or only by an exception,
// have none. Returns reports an error for code that it cannot follow, and for returns that cannot
// be probed.
func Returns(o Options, f Flow) (Exits, error) {
	m, err := machineOf(o)
	if err != nil {
		return Exits{}, err
	}
	w := flow{Flow: f, options: o, machine: m, seen: map[uint64]bool{}, open: []uint64{f.Entry}}
	w.exits.Cost = NopOptimised
	for len(w.open) > 0 {
		pc := w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
		if err := w.follow(pc); err != nil {
			return Exits{}, fmt.Errorf("find the returns of %#x: %w", f.Entry, err)
		}
	}
	for _, all := range [][]uint64{w.exits.Returns, w.exits.Jumps, w.exits.Conds, w.exits.Calls} {
		slices.Sort(all)
	}
	return w.exits, nil
}

// flow is a search for returns.
type flow struct {
	Flow
	options Options
	machine machine
	seen    map[uint64]bool
	open    []uint64 // where paths continue
	exits   Exits
}

// follow follows a path from pc to its end.
func (w *flow) follow(pc uint64) error {
	end := w.end(pc)
	for !w.seen[pc] && pc < end {
		if len(w.seen) == maxFlow {
			return fmt.Errorf("%w: it has more than %d instructions", ErrFlow, maxFlow)
		}
		if pc < w.Base || pc-w.Base >= uint64(len(w.Code)) {
			return fmt.Errorf("%w: it leads to %#x, which is not in code", ErrFlow, pc)
		}
		w.seen[pc] = true
		in := w.machine.decode(w.Code[pc-w.Base:], pc)
		if in.size == 0 {
			return fmt.Errorf("%w: unknown instruction at %#x", ErrFlow, pc)
		}
		next, err := w.step(&in, pc)
		if err != nil || next == 0 {
			return err
		}
		if in.kind == jump || in.kind == leave {
			end = w.end(next)
		}
		pc = next
	}
	return nil
}

// end returns the end of the function that contains the code at pc.
func (w *flow) end(pc uint64) uint64 {
	if w.Bounds != nil {
		if end, ok := w.Bounds(pc); ok {
			return end
		}
	}
	return ^uint64(0)
}

// step returns where the path continues after an instruction, or 0 where it ends. Where the path
// forks, the other branch is kept for later.
func (w *flow) step(in *insn, pc uint64) (next uint64, err error) {
	next = pc + uint64(in.size)
	switch {
	case in.returns && in.cost == Refused:
		return 0, fmt.Errorf("%w: the return at %#x cannot be probed", ErrFlow, pc)
	case in.returns:
		w.exits.Returns = append(w.exits.Returns, pc)
		w.exits.Cost = min(w.exits.Cost, in.cost)
		return 0, nil
	case in.traps:
		return 0, nil
	case in.kind == leave && !in.calls:
		if function, ok := w.slot(in.slot); ok {
			if w.stops(function, false) {
				w.exits.Stopped = true
				w.exits.Jumps = append(w.exits.Jumps, pc)
				return 0, nil
			}
			return function, nil
		}
		return 0, fmt.Errorf("%w: it jumps through a pointer at %#x", ErrFlow, pc)
	case in.direct && w.stops(w.throughStub(in.target), in.kind == call):
		w.exits.Stopped = true
		switch in.kind {
		case cond:
			w.exits.Conds = append(w.exits.Conds, pc)
			return next, nil
		case jump:
			w.exits.Jumps = append(w.exits.Jumps, pc)
		case call:
			w.exits.Calls = append(w.exits.Calls, pc)
		}
		return 0, nil
	case in.direct && in.kind == jump:
		return w.throughStub(in.target), nil
	case in.direct && in.kind == cond:
		w.open = append(w.open, w.throughStub(in.target))
	}
	return next, nil
}

func (w *flow) slot(addr uint64) (uint64, bool) {
	if w.Slot == nil || addr == 0 {
		return 0, false
	}
	return w.Slot(addr)
}

func (w *flow) stops(target uint64, call bool) bool {
	return w.Stop != nil && w.Stop(target, call)
}

// throughStub returns where a branch to target leads: if target is a PLT stub for a function of
// the library, to that function.
func (w *flow) throughStub(target uint64) uint64 {
	if w.Slot == nil || target < w.Base || target-w.Base >= uint64(len(w.Code)) {
		return target
	}
	if slot, ok := Stub(w.options, w.Code[target-w.Base:], target); ok {
		if function, ok := w.Slot(slot); ok {
			return function
		}
	}
	return target
}
