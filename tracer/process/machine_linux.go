package process

import (
	"debug/elf"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/site"
)

// Machine is a kind of program that can be traced here. [Machines] has one for each
// instruction set and word size.
type Machine struct {
	ELF  elf.Machine
	Arch site.Arch
	name string // what uname -m prints for such programs; "": the name of the kernel's machine
	Word uint64 // bytes of a pointer
	Call uint64 // bytes of a direct call

	// register returns the name of the register that instructions number n.
	register func(n uint8) string
	// Registers returns the registers of a raw stack by their DWARF numbers, with the
	// values that they have after the probed function's return.
	Registers func(raw *object.ProbeRawStack) reference.Registers
	// StayInside makes Registers return the registers of the probed instruction instead, where
	// there is a probe inside a function. It may be nil where there is none.
	StayInside func(raw *object.ProbeRawStack)
	// Whole and Bounded return the BPF programs; Bounded those for kernels without
	// bpf_loop.
	Whole, Bounded func() (*ebpf.CollectionSpec, error)

	// ArenaHeap is the bytes that glibc reserves for each heap of an arena other than the
	// first, at a multiple of that size (HEAP_MAX_SIZE). Only the beginning is accessible.
	ArenaHeap uint64
	// Trap reports whether functions with return probes return through a trap on every
	// kernel. They then need none of the tests for seccomp and shadow stacks.
	Trap bool
}

// bits returns the class of the machine's ELF files: 32 or 64.
func (m *Machine) bits() int { return int(8 * m.Word) }

// Uname returns the machine's name as uname -m prints it, or "" if that fails.
func (m *Machine) Uname() string {
	if m.name != "" {
		return m.name
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// Place names the place of an argument: a register, or bytes from the stack pointer.
func (m *Machine) Place(n uint8) string {
	if n >= site.StackWord && n != site.NoReg {
		return fmt.Sprintf("stack+%d", uint64(n-site.StackWord+1)*m.Word)
	}
	return m.register(n)
}

// MachineOf returns the machine of a program, by the head of its file. If the program
// cannot be traced here, the error wraps ErrMachine and names the kind of program.
func MachineOf(h proc.Head) (*Machine, error) {
	for i := range Machines {
		if m := &Machines[i]; m.ELF == h.Machine && m.bits() == h.Bits {
			return m, nil
		}
	}
	switch {
	case h.Machine == elf.EM_X86_64 && h.Bits == 32:
		return nil, fmt.Errorf("%w: it is an x32 program (x86-64 with 32-bit pointers)", host.ErrMachine)
	case h.Machine == elf.EM_ARM:
		return nil, fmt.Errorf("%w: it is a 32-bit program for ARM", host.ErrMachine)
	}
	return nil, fmt.Errorf("%w: it is a %d-bit program for %s", host.ErrMachine, h.Bits, machineName(h.Machine))
}

// machineName returns a name for a machine of ELF, or its number.
func machineName(m elf.Machine) string {
	names := map[elf.Machine]string{
		elf.EM_386: "x86", elf.EM_X86_64: "x86-64", elf.EM_ARM: "ARM", elf.EM_AARCH64: "ARM64",
		elf.EM_RISCV: "RISC-V", elf.EM_PPC64: "POWER", elf.EM_S390: "s390", elf.EM_MIPS: "MIPS",
	}
	if name := names[m]; name != "" {
		return name
	}
	return fmt.Sprintf("machine %d", uint16(m))
}
