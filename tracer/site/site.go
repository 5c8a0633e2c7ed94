package site

import (
	"errors"
	"fmt"
	"slices"
)

// Window is how many bytes after a function's entry a site may be. In practice the first branch,
// which ends the search, comes earlier; jemalloc's free has it at 48.
const Window = 128

// NoReg in a [Place] means no register.
const NoReg = 31

// StackWord and the seven numbers after it are the places of the first eight words of arguments
// on the stack of i386: see [Place].
const StackWord = 16

// Errors of [Choose].
var (
	// ErrIndirect is returned for an IFUNC: its code runs once to select the function to use, and
	// calls go to the selected function.
	ErrIndirect = errors.New("symbol is an indirect function (IFUNC)")

	// ErrNoSite is returned if no instruction of the function can be probed.
	ErrNoSite = errors.New("no instruction can be probed")
)

// Arch is an instruction set.
type Arch uint8

// The supported instruction sets.
const (
	AMD64 Arch = iota + 1
	ARM64
	I386 // 32-bit programs on a kernel for x86-64
)

// String returns Go's name of the architecture.
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

// Cost is what the kernel does about the instruction that a probe replaced. A larger Cost is
// cheaper.
type Cost uint8

// The classes of cost.
const (
	// Refused instructions cannot be probed: attaching fails, or some kernels do the wrong thing.
	Refused Cost = iota
	// SingleStep instructions run from a copy, with one more exception.
	SingleStep
	// Emulated instructions are computed by the kernel.
	Emulated
	// NopOptimised is a five-byte nop that the kernel replaces with a call, so that no exception
	// happens at all.
	NopOptimised
)

var costNames = [...]string{"refused", "single-step", "emulated", "nop-optimised"}

// String returns the name of the class in the output of rtrace-bpf plan.
func (c Cost) String() string {
	if int(c) < len(costNames) {
		return costNames[c]
	}
	return fmt.Sprintf("cost(%d)", uint8(c))
}

// Options describe the code and what the kernel can do beyond what all supported kernels can.
type Options struct {
	Arch Arch

	// Nops is set if the kernel emulates nops other than the single byte 90 (x86, since about
	// 6.17) or the nop of arm64 (since 6.13). Without it, they count as single-stepped, and 66
	// 90, which kernels before 6.2 refuse, as refused.
	Nops bool

	// Nop5 is set if the kernel optimises probes on five-byte nops of x86-64. Kernels do so only
	// in processes without a shadow stack, and never in 32-bit ones.
	Nop5 bool

	// GOT is the address that ebx has in position-independent code of i386, the DT_PLTGOT of the
	// file. PLT stubs find their slots relative to it. If it is 0, only slots at fixed addresses
	// are known.
	GOT uint64
}

// Function describes the function to probe and what its probe needs.
type Function struct {
	Name  string
	Entry uint64 // virtual address of Code[0]
	Code  []byte // the function's body; only read
	IFunc bool   // the symbol is of type STT_GNU_IFUNC

	// Args holds the indexes of the integer or pointer arguments that the probe reads. They count
	// from zero over the arguments passed in registers: at most six on x86-64, eight on arm64. On
	// i386 they are the first eight words of the arguments on the stack.
	Args []int

	// Factors holds two of Args of which the probe needs only the product, so that a register
	// with the product is enough. Equal indexes mean none.
	Factors [2]int

	// AfterCall is set if Code is not a function but what follows a call in one, from the
	// address that the call returns to. Argument 0 is then the result of the call, and there
	// is no other.
	AfterCall bool

	// Return is set if a return probe will sit on the same site.
	Return bool

	// SkipNull allows, and prefers, sites that calls whose Args[0] is zero do not reach:
	// free(NULL) frees nothing.
	SkipNull bool

	// Incoming holds branches from outside of Code, as [Branches] finds them. Those that lead
	// elsewhere or start within Code are ignored.
	Incoming []Branch

	// Target returns the name of the probed function that starts at addr or is reached through
	// the PLT stub at addr. If it is nil, none is known.
	Target func(addr uint64) (name string, ok bool)

	// Slot returns the name of the probed function that the pointer at addr, an entry of the GOT,
	// will lead to. If it is nil, none is known.
	Slot func(addr uint64) (name string, ok bool)
}

// Place is where the value of an argument is at a site.
type Place struct {
	// Reg is the register's number in the machine's encoding. On x86-64 rax is 0, rcx 1, rdx 2,
	// rbx 3, rbp 5, rsi 6, rdi 7, and r8 to r15 have their own numbers. On arm64 x0 to x28 have
	// their own numbers. On i386 eax is 0 and so on up to edi. It is never the stack pointer, and
	// on arm64 never x18 (reserved), x29 or x30.
	//
	// On i386 StackWord+k is the k-th word of arguments: 4+4k bytes above the place of the return
	// address, which is Site.StackAdjust above the stack pointer.
	Reg uint8

	// Product is set if the register holds the product of the two [Function.Factors], modulo the
	// range of a register, instead of this argument alone.
	Product bool
}

// Thunk is the jump of a function that consists of one jump.
type Thunk struct {
	Target uint64 // target of the jump, 0 if it is read from Slot
	Slot   uint64 // address of the pointer to the target
}

// Site is a place for a probe.
type Site struct {
	Addr   uint64 // virtual address
	Offset int    // Addr - Function.Entry
	Cost   Cost
	Insn   string // the instruction, in the syntax of the GNU assembler

	// Args holds the places of the arguments, in the order of Function.Args.
	Args []Place

	// StackAdjust is how many bytes the stack pointer is below its value at the function's entry.
	// It is 0 if Function.Return is set.
	StackAdjust int

	// FrameChanged is set if the frame pointer register no longer has its
	// caller's value.
	FrameChanged bool

	// SkipsNull is set if calls with a zero in Args[0] do not reach the site.
	SkipsNull bool

	// TailCalls names the probed functions to which this one ends in a jump. Their probes see the
	// same return address on the same stack. It includes the function's own name if its body
	// jumps back to its entry.
	TailCalls []string

	// Thunk is set if the function consists of one jump. Its calls are then also seen at the
	// jump's target.
	Thunk *Thunk

	// Candidates holds the instructions that were considered, in the order of their addresses,
	// for -vv.
	Candidates []Candidate
}

// Candidate is an instruction that was considered, and the verdict on it.
type Candidate struct {
	Offset  int
	Cost    Cost
	Insn    string
	Verdict string // "chosen", or the reason against it
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

// check ensures that later code can use the caller's values as indexes.
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
			return fmt.Errorf("the place of argument %d is unknown", a)
		}
	}
	if x := f.Factors; x[0] != x[1] && !(has(x[0]) && has(x[1])) {
		return fmt.Errorf("factors %v are not among the arguments %v", x, f.Args)
	}
	if f.AfterCall && (!slices.Equal(f.Args, []int{0}) || f.Return || f.SkipNull) {
		return errors.New("after a call there is only its result as an argument")
	}
	if f.SkipNull && len(f.Args) == 0 {
		return errors.New("SkipNull needs an argument")
	}
	return nil
}
