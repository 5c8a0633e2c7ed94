package reference

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
)

// End is why a stack has no further frame.
type End uint8

// The ends of a stack. Only a Complete stack is whole.
const (
	going      End = iota
	Complete       // the outermost frame was reached
	Truncated      // there are more frames than Depth allows
	NoRule         // no table covers the code of the last frame
	BadFrame       // the next frame would not be above the last one, or is misaligned
	Unreadable     // memory that is needed to find the next frame could not be read
	Unmapped       // the last frame is not in executable memory
	BadRule        // the rules of the last frame are malformed or lead nowhere
)

var ends = [...]string{"going", "complete", "truncated", "no rule", "bad frame", "unreadable", "unmapped", "bad rule"}

func (e End) String() string {
	if int(e) < len(ends) {
		return ends[e]
	}
	return fmt.Sprintf("end %d", uint8(e))
}

// Stack is an unwound stack.
type Stack struct {
	Frames       []uint64 // pc of the first frame, then return addresses outward
	End          End
	FramePointer bool  // a frame-pointer step was taken: the frames after it are not certain
	Err          error // why the stack is not whole; nil if it is Complete or Truncated
}

// Options choose how to unwind.
type Options struct {
	Machine elf.Machine // EM_X86_64, EM_AARCH64 or EM_386
	Depth   int         // the most frames

	// AddressBits is the most bits that the process's addresses have; 0 means 48. The bits
	// above may sign a return address (arm64).
	AddressBits int

	// Interrupted reports that the first pc is the next instruction, as in a stopped thread.
	// Otherwise it is a return address, and the registers are those after the return.
	Interrupted bool

	// FramePointer allows a frame-pointer step where there is no rule.
	FramePointer bool

	// Trampoline returns the true return address of a function that returns to a return probe
	// of the kernel. sp is the stack pointer at the function's entry; on amd64 and i386 that is
	// the place of the return address. Trampoline may be nil.
	Trampoline func(sp uint64) (uint64, bool)
}

func (o *Options) addressBits() int { return cmp.Or(o.AddressBits, 48) }

// Unwind returns the stack of a thread with the given registers.
//
// A stack is Complete if the return address is undefined by the rules, or is zero after at
// least one step. After Depth frames, Unwind still looks for one more, so that only a stack
// that continues is Truncated.
func Unwind(regs Registers, mem Memory, mods Modules, o Options) Stack {
	var s Stack
	m := machines[o.Machine]
	if m == nil {
		return Stack{End: BadRule, Err: fmt.Errorf("unwinding for %v: %w", o.Machine, errors.ErrUnsupported)}
	}
	f := frame{regs: regs, mem: mem, mods: mods, machine: m, options: &o, exact: o.Interrupted}
	for n := range f.regs.R { // only the lower halves belong to a 32-bit program
		f.regs.R[n] = m.wrap(f.regs.R[n])
	}
	if !o.Interrupted {
		f.regs.Forget(m.link) // the returned call changed it
	}
	pc, ok := f.regs.Get(m.pc)
	if _, known := f.regs.Get(m.sp); !ok || !known {
		return Stack{End: BadRule, Err: fmt.Errorf("first frame: pc or stack pointer: %w", errUnknown)}
	}
	for {
		if len(s.Frames) >= o.Depth {
			s.End = Truncated
			return s
		}
		s.Frames = append(s.Frames, pc)
		f.number = len(s.Frames) - 1
		var err error
		if s.End, err = f.step(); s.End != going {
			if err != nil {
				s.Err = fmt.Errorf("frame %d at %#x: %w", f.number, pc, err)
			}
			return s
		}
		s.FramePointer = s.FramePointer || f.guessed
		pc = f.regs.R[m.pc]
	}
}
