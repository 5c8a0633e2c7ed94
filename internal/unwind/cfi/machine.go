package cfi

import (
	"debug/elf"
	"math"
	"strconv"
)

// Machine is an instruction set. It determines the meaning of register numbers.
type Machine uint8

// The supported machines. The register numbers are those of the System V ABI's AMD64
// supplement, figure 3.36, of "DWARF for the Arm 64-bit Architecture", section 4.1, and of the
// System V ABI's Intel386 supplement, version 1.1, table 2.14.
const (
	// AMD64: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp are 0 to 7, r8 to r15 are
	// 8 to 15, and the return address is 16.
	AMD64 Machine = iota + 1
	// ARM64: x0 to x30 are 0 to 30, sp is 31, pc 32. The return address is in
	// x30. 34 is the state of its signature, which [Row.SignedRA] holds.
	ARM64
	// I386: eax, ecx, edx, ebx, esp, ebp, esi, edi are 0 to 7, and the return
	// address is 8.
	I386
)

// Registers is the number of registers that a [Row] has rules for. On every machine, the
// registers that matter for finding a caller have smaller numbers.
const Registers = 33

// MachineOf returns the machine of an ELF file, or 0 if it is not supported.
func MachineOf(m elf.Machine) Machine {
	switch m {
	case elf.EM_X86_64:
		return AMD64
	case elf.EM_AARCH64:
		return ARM64
	case elf.EM_386:
		return I386
	}
	return 0
}

// Word returns the size in bytes of an address and of a register that is saved on the stack.
func (m Machine) Word() int {
	if m == I386 {
		return 4
	}
	return 8
}

// Wrap returns a sum of addresses modulo the size of the address space.
func (m Machine) Wrap(sum uint64) uint64 { return sum & m.highest() }

// highest returns the highest address.
func (m Machine) highest() uint64 {
	if m == I386 {
		return math.MaxUint32
	}
	return math.MaxUint64
}

// SP returns the number of the stack pointer.
func (m Machine) SP() uint8 {
	switch m {
	case ARM64:
		return 31
	case I386:
		return 4
	}
	return 7
}

// FP returns the number of the frame pointer: rbp, x29 or ebp.
func (m Machine) FP() uint8 {
	switch m {
	case ARM64:
		return 29
	case I386:
		return 5
	}
	return 6
}

// RA returns the column of the return address: a column of its own on AMD64 and I386, x30 on
// ARM64.
func (m Machine) RA() uint8 {
	switch m {
	case ARM64:
		return 30
	case I386:
		return 8
	}
	return 16
}

var amd64Names = [...]string{
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ra",
}

var i386Names = [...]string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "ra"}

// Register returns the name of a register.
func (m Machine) Register(n uint8) string {
	switch {
	case m == AMD64 && int(n) < len(amd64Names):
		return amd64Names[n]
	case m == I386 && int(n) < len(i386Names):
		return i386Names[n]
	case m == ARM64 && n <= 30:
		return "x" + strconv.Itoa(int(n))
	case m == ARM64 && n == 31:
		return "sp"
	case m == ARM64 && n == 32:
		return "pc"
	}
	return "register " + strconv.Itoa(int(n))
}
