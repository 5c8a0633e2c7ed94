package reference

import (
	"debug/elf"

	"rtrace-bpf/internal/unwind/cfi"
)

// Registers holds the registers of one frame, by DWARF number.
//
// On amd64 0 to 15 are rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and 16 is rip. On
// i386 0 to 7 are eax, ecx, edx, ebx, esp, ebp, esi, edi, and 8 is eip. On arm64 0 to 30 are x0
// to x30, 31 is sp, and 32 is pc. Vector registers, some of which are callee-saved, are not
// included, because no frame is found through them.
type Registers struct {
	R     [cfi.Registers]uint64
	Valid uint64 // bit n is set if R[n] is known
}

// Get returns the value of register n, and whether it is known.
func (r *Registers) Get(n uint64) (uint64, bool) {
	if n >= cfi.Registers || r.Valid>>n&1 == 0 {
		return 0, false
	}
	return r.R[n], true
}

// Set sets the value of register n. It ignores registers that are not followed.
func (r *Registers) Set(n, value uint64) {
	if n < cfi.Registers {
		r.R[n] = value
		r.Valid |= 1 << n
	}
}

// Forget makes register n unknown.
func (r *Registers) Forget(n uint64) {
	if n < cfi.Registers {
		r.R[n] = 0
		r.Valid &^= 1 << n
	}
}

// machine holds what differs between instruction sets.
type machine struct {
	pc, sp, fp uint64
	link       uint64 // register in which a call leaves the return address, or none
	entry      uint64 // CFA minus the stack pointer at a function's entry
	word       uint   // bytes of a register
	restorers  []restorer
	last       []byte // code without rules that the outermost function of a context returns to
}

// wrap truncates v to a word.
func (m *machine) wrap(v uint64) uint64 {
	unused := 64 - 8*m.word
	return v << unused >> unused
}

// signed returns a word as a signed number.
func (m *machine) signed(v uint64) int64 {
	unused := 64 - 8*m.word
	return int64(v<<unused) >> unused
}

// none means no register.
const none = cfi.Registers

var machines = map[elf.Machine]*machine{
	elf.EM_X86_64:  {pc: 16, sp: 7, fp: 6, link: none, entry: 8, word: 8, restorers: restorersAMD64},
	elf.EM_AARCH64: {pc: 32, sp: 31, fp: 29, link: 30, word: 8, restorers: restorersARM64},
	elf.EM_386:     {pc: 8, sp: 4, fp: 5, link: none, entry: 4, word: 4, restorers: restorersI386, last: lastI386},
}
