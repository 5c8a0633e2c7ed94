package cfi

import (
	"debug/elf"
	"strconv"
)

// Machine is an instruction set. It gives meaning to numbers of registers.
type Machine uint8

// The machines that are known. Their numbers of registers are those of the
// System V ABI's AMD64 supplement, figure 3.36, and of "DWARF for the Arm
// 64-bit Architecture", section 4.1.
const (
	// AMD64: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp are 0 to 7, r8 to r15 are
	// 8 to 15, and the return address is 16.
	AMD64 Machine = iota + 1
	// ARM64: x0 to x30 are 0 to 30, sp is 31, pc 32. The return address is in
	// x30. 34 is the state of its signature, which [Row.SignedRA] holds.
	ARM64
)

// Registers is how many registers a [Row] has rules for; those of any machine
// that can matter for finding a caller have smaller numbers.
const Registers = 33

// MachineOf returns the machine of an ELF file, or 0 if it is not known.
func MachineOf(m elf.Machine) Machine {
	switch m {
	case elf.EM_X86_64:
		return AMD64
	case elf.EM_AARCH64:
		return ARM64
	}
	return 0
}

// SP returns the number of the stack pointer.
func (m Machine) SP() uint8 {
	if m == ARM64 {
		return 31
	}
	return 7
}

// FP returns the number of the frame pointer: rbp or x29.
func (m Machine) FP() uint8 {
	if m == ARM64 {
		return 29
	}
	return 6
}

// RA returns the number under which the return address is restored: a column
// of its own on AMD64, x30 on ARM64.
func (m Machine) RA() uint8 {
	if m == ARM64 {
		return 30
	}
	return 16
}

var amd64Names = [...]string{
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ra",
}

// Register returns the name of a register.
func (m Machine) Register(n uint8) string {
	switch {
	case m == AMD64 && int(n) < len(amd64Names):
		return amd64Names[n]
	case m == ARM64 && n <= 30:
		return "x" + strconv.Itoa(int(n))
	case m == ARM64 && n == 31:
		return "sp"
	case m == ARM64 && n == 32:
		return "pc"
	}
	return "register " + strconv.Itoa(int(n))
}
