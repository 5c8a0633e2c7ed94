package reference

import (
	"errors"
	"fmt"

	"rtrace-bpf/internal/unwind/cfi"
)

// frame is the current frame of an unwind.
type frame struct {
	regs    Registers
	exact   bool // pc is the next instruction, not a return address
	number  int
	guessed bool // the last step followed the frame pointer

	mem     Memory
	mods    Modules
	machine *machine
	options *Options
	module  Module // the module that contains pc; zero if none does
}

// stepped reports whether a step led to this frame. In the first frame, a zero where an address
// is expected does not mark the outermost frame.
func (f *frame) stepped() bool { return f.number > 0 }

// step moves to the caller's frame, or returns why there is none.
func (f *frame) step() (End, error) {
	pc := f.regs.R[f.machine.pc]
	// A call may be the last instruction of a function, so its return address may be in the
	// next function. The byte before is not.
	lookup := pc - 1
	if f.exact {
		lookup = pc
	}
	f.guessed = false
	var mapped bool
	f.module, mapped = f.mods.Find(lookup)
	var fde *cfi.FDE
	if mapped && f.module.Index != nil {
		fde, _ = f.module.Index.Find(lookup - f.module.Bias)
	}
	if fde != nil && fde.CIE.Signal {
		if f.misleads(fde) {
			return f.leaveSignal(&f.machine.restorers[0])
		}
		return f.leaveByRules(fde, lookup)
	}
	if r := f.restorer(pc); r != nil {
		return f.leaveSignal(r)
	}
	switch {
	case fde != nil:
		return f.leaveByRules(fde, lookup)
	case f.isLast(pc):
		return Complete, nil
	case f.options.FramePointer:
		return f.leaveByPointer()
	case mapped:
		return NoRule, errors.New("no table covers the pc")
	}
	return Unmapped, errors.New("no module contains the pc")
}

// lastI386 is the code that a function prepared by makecontext returns to. In glibc it follows
// the end of the FDE of makecontext: lea (%esp,%ebx,4), %esp; cmpl $0, (%esp).
var lastI386 = []byte{0x8d, 0x24, 0x9c, 0x83, 0x3c, 0x24, 0}

// isLast reports whether the code at pc is that of the machine's last.
func (f *frame) isLast(pc uint64) bool { return f.machine.last != nil && f.has(pc, f.machine.last) }

// leaveByRules executes the rules of fde at the address lookup of memory.
func (f *frame) leaveByRules(fde *cfi.FDE, lookup uint64) (End, error) {
	row, err := fde.RowAt(lookup - f.module.Bias)
	if err != nil {
		return BadRule, err
	}
	column := uint64(fde.CIE.ReturnReg)
	if column >= cfi.Registers {
		return BadRule, fmt.Errorf("return address in register %d: %w", column, errors.ErrUnsupported)
	}
	if row.Rules[column].How == cfi.Undefined {
		return Complete, nil
	}
	cfa, err := f.cfa(&row)
	if err != nil {
		return ending(err), fmt.Errorf("CFA: %w", err)
	}
	if !row.Signal {
		if err := f.above(cfa); err != nil {
			return BadFrame, err
		}
	}
	caller, err := f.caller(&row, cfa)
	if err != nil {
		return ending(err), err
	}
	address, err := f.returnAddress(&row, column, cfa)
	if err != nil {
		return ending(err), err
	}
	return f.enter(caller, address, row.Signal)
}

// enter makes caller the current frame, which continues at pc.
func (f *frame) enter(caller Registers, pc uint64, exact bool) (End, error) {
	if pc == 0 {
		return f.outermost("return address")
	}
	caller.Set(f.machine.pc, pc)
	if !exact {
		// The call changed it, and no rule can restore it.
		caller.Forget(f.machine.link)
	}
	f.regs, f.exact = caller, exact
	return going, nil
}

// outermost returns the end for a zero, which marks the outermost frame.
func (f *frame) outermost(what string) (End, error) {
	if !f.stepped() {
		return BadFrame, fmt.Errorf("%s is zero", what)
	}
	return Complete, nil
}

// above checks that a caller's frame begins at cfa: above the part of the stack that the callee
// uses. A function that was interrupted may use nothing.
func (f *frame) above(cfa uint64) error {
	sp := f.regs.R[f.machine.sp]
	if cfa < sp || cfa == sp && !f.exact {
		return fmt.Errorf("CFA %#x is not above stack pointer %#x", cfa, sp)
	}
	if cfa%uint64(f.machine.word) != 0 {
		return fmt.Errorf("CFA %#x is misaligned", cfa)
	}
	return nil
}

// ending returns the End for an error.
func ending(err error) End {
	if errors.Is(err, errUnreadable) {
		return Unreadable
	}
	return BadRule
}
