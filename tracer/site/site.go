package site

import (
	"errors"
	"fmt"
	"slices"
)

// Window is how far behind a function's entry, in bytes, a site may be. The
// first branch, which ends the search, is nearer in practice; jemalloc's free
// has its at 48.
const Window = 128

// NoReg is the number of no register in a [Place].
const NoReg = 31

// StackWord and the seven numbers behind it are the places of the first eight
// words of arguments on the stack of i386: see [Place].
const StackWord = 16

// Errors of [Choose].
var (
	// ErrIndirect is returned for an IFUNC: its code selects the function to
	// use, once, and the calls go to the selected one.
	ErrIndirect = errors.New("symbol is an indirect function (IFUNC)")

	// ErrNoSite is returned if no instruction of the function can be probed.
	ErrNoSite = errors.New("no instruction can be probed")
)

// Arch is an instruction set.
type Arch uint8

// The known instruction sets.
const (
	AMD64 Arch = iota + 1
	ARM64
	I386 // 32-bit programs, as a kernel of x86-64 runs them
)

// String returns the name that Go gives the architecture.
func (a Arch) String() string {
	switch a {
	case AMD64:
		return "amd64"
	case ARM64:
		return "arm64"
	case I386:
		return "386"
	}
	return fmt.Sprintf("arch(%d)", uint8(a))
}

// Cost says what the kernel does about the instruction that a probe replaced.
// A larger one is cheaper.
type Cost uint8

// The classes of cost.
const (
	// Refused instructions cannot be probed: attaching fails, or a kernel is
	// known that does the wrong thing.
	Refused Cost = iota
	// SingleStep instructions run from a copy, one exception more.
	SingleStep
	// Emulated instructions are computed by the kernel.
	Emulated
	// NopOptimised is a five-byte nop that the kernel replaces by a call, so
	// that no exception happens at all.
	NopOptimised
)

var costNames = [...]string{"refused", "single-step", "emulated", "nop-optimised"}

// String returns the name of the class as --dry-run prints it.
func (c Cost) String() string {
	if int(c) < len(costNames) {
		return costNames[c]
	}
	return fmt.Sprintf("cost(%d)", uint8(c))
}

// Options say which code is read and what the kernel can do beyond what all
// supported kernels can.
type Options struct {
	Arch Arch

	// Nops is set if the kernel emulates nops other than the single byte 90
	// (x86, since about 6.17) or the nop of arm64 (since 6.13). Without it
	// they are taken for single-stepped, and 66 90, which kernels before 6.2
	// refuse, for refused.
	Nops bool

	// Nop5 is set if the kernel optimises probes on five-byte nops of x86-64.
	// Kernels do so only in processes without a shadow stack, and never in
	// 32-bit ones.
	Nop5 bool

	// GOT is the address that ebx has in position-independent code of i386, the
	// DT_PLTGOT of the file. PLT stubs find their slots by it. Where it is 0,
	// only slots at fixed addresses are known.
	GOT uint64
}

// Function describes the function to be probed and what its probe needs.
type Function struct {
	Name  string
	Entry uint64 // virtual address of Code[0]
	Code  []byte // the function's body; only read
	IFunc bool   // the symbol is of type STT_GNU_IFUNC

	// Args are the indexes of the integer or pointer arguments that the probe
	// reads, counted from zero over those passed in registers: at most six on
	// x86-64, eight on arm64. On i386 they are the first eight words of the
	// arguments on the stack.
	Args []int

	// Factors are two of Args of which the probe only needs the product, so
	// that a register which holds it is enough. Equal indexes mean none.
	Factors [2]int

	// Behind is set if Code is not a function but what follows a call in one,
	// from the address that the call returns to. Argument 0 is then the result
	// of the call, and there is no other.
	Behind bool

	// Return is set if a return probe will sit on the same site.
	Return bool

	// SkipNull allows, and prefers, sites that calls whose Args[0] is zero do
	// not reach: free(NULL) frees nothing.
	SkipNull bool

	// Incoming are branches from outside of Code, as [Branches] finds them.
	// Those that lead elsewhere or start within Code are ignored.
	Incoming []Branch

	// Target names the probed function that starts at addr or is reached
	// through the PLT stub at addr. Nil knows none.
	Target func(addr uint64) (name string, ok bool)

	// Slot names the probed function that the pointer stored at addr, an
	// entry of the GOT, will lead to. Nil knows none.
	Slot func(addr uint64) (name string, ok bool)
}

// Place is where the value of an argument is at a site.
type Place struct {
	// Reg is the number that the machine's encoding gives the register: on
	// x86-64 rax is 0, rcx 1, rdx 2, rbx 3, rbp 5, rsi 6, rdi 7 and r8 to r15
	// themselves; on arm64 x0 to x28 themselves; on i386 eax is 0 and so on up to
	// edi. Never the stack pointer, and on arm64 never x18 (reserved), x29 or x30.
	//
	// On i386 StackWord+k is the k-th word of arguments: 4+4k bytes above the
	// return address's place, which is Site.StackAdjust above the stack pointer.
	Reg uint8

	// Product is set if the register holds the product of the two
	// [Function.Factors], modulo the range of a register, instead of this
	// argument alone.
	Product bool
}

// Thunk is the only jump of a function that does nothing else.
type Thunk struct {
	Target uint64 // address jumped to, 0 if it is read from Slot
	Slot   uint64 // address of the pointer to the target
}

// Site is a place for a probe.
type Site struct {
	Addr   uint64 // virtual address
	Offset int    // Addr - Function.Entry
	Cost   Cost
	Insn   string // the instruction, in the syntax of the GNU assembler

	// Args says where the arguments are, in the order of Function.Args.
	Args []Place

	// StackAdjust is by how many bytes the stack pointer is lower than at the
	// function's entry. It is 0 if Function.Return is set.
	StackAdjust int

	// FrameChanged is set if the frame pointer register no longer has its
	// caller's value.
	FrameChanged bool

	// SkipsNull is set if calls with a zero in Args[0] do not reach the site.
	SkipsNull bool

	// TailCalls names the probed functions to which this one ends in a jump,
	// so that their probes see the same return address on the same stack. It
	// has the function's own name if its body jumps back to its entry.
	TailCalls []string

	// Thunk is set if the function consists of one jump. Calls then show up
	// at the jump's target as well.
	Thunk *Thunk

	// Candidates are the instructions that were looked at, in the order of
	// their addresses, for -vv.
	Candidates []Candidate
}

// Candidate is an instruction that was looked at, and the verdict on it.
type Candidate struct {
	Offset  int
	Cost    Cost
	Insn    string
	Verdict string // "chosen", or why it was not
}

// Choose returns the best site of f.
func Choose(o Options, f Function) (Site, error) {
	s, err := choose(o, f)
	if err != nil {
		return Site{}, fmt.Errorf("choose probe site of %s: %w", f.Name, err)
	}
	return s, nil
}

func choose(o Options, f Function) (Site, error) {
	if f.IFunc {
		return Site{}, ErrIndirect
	}
	m, err := machineOf(o)
	if err != nil {
		return Site{}, err
	}
	if err := check(m, &f); err != nil {
		return Site{}, err
	}
	w := walk(m, &f)
	b := sweep(m, &f)
	s, err := pick(w, b, &f)
	if err != nil {
		return Site{}, err
	}
	s.TailCalls = b.tailCalls(&f)
	s.Thunk = w.thunk
	s.Insn = m.text(f.Code[s.Offset:], s.Addr)
	for i := range s.Candidates {
		c := &s.Candidates[i]
		c.Insn = m.text(f.Code[c.Offset:], f.Entry+uint64(c.Offset))
	}
	return s, nil
}

// check makes sure that later code can index by what the caller gave.
func check(m machine, f *Function) error {
	if len(f.Code) == 0 {
		return errors.New("function has no code")
	}
	if end := f.Entry + uint64(len(f.Code)); end < f.Entry || m.addr(end-1) != end-1 {
		return fmt.Errorf("code of %d bytes at %#x exceeds the address space", len(f.Code), f.Entry)
	}
	has := func(arg int) bool { return slices.Contains(f.Args, arg) }
	for _, a := range f.Args {
		if a < 0 || a >= len(m.arguments()) {
			return fmt.Errorf("argument %d is in no place that is known", a)
		}
	}
	if x := f.Factors; x[0] != x[1] && !(has(x[0]) && has(x[1])) {
		return fmt.Errorf("factors %v are not among the arguments %v", x, f.Args)
	}
	if f.Behind && (!slices.Equal(f.Args, []int{0}) || f.Return || f.SkipNull) {
		return errors.New("behind a call there is its result alone, always")
	}
	if f.SkipNull && len(f.Args) == 0 {
		return errors.New("no argument is given whose null value may be skipped")
	}
	return nil
}
