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

// Machine is a kind of programs that can be traced here. There is one for each
// machine whose programs the kernel runs; see machines.
type Machine struct {
	ELF  elf.Machine
	Arch site.Arch
	name string // as uname -m says for such programs; "" for the kernel's own
	Word uint64 // bytes of a pointer
	Call uint64 // bytes of a direct call

	// register names a register by the number that instructions give it.
	register func(n uint8) string
	// registers returns those of a raw stack by DWARF number, as they are behind
	// the return of the probed function.
	Registers func(raw *object.ProbeRawStack) reference.Registers
	// whole and bounded read the programs, the latter for kernels without bpf_loop.
	Whole, Bounded func() (*ebpf.CollectionSpec, error)

	// arenaHeap is how much glibc reserves for each heap of an arena other than
	// the first, at a multiple of it (HEAP_MAX_SIZE). It makes only the beginning
	// accessible.
	ArenaHeap uint64
	// trap says that functions with return probes return through a trap on every
	// kernel: see checkReturnProbes.
	Trap bool
}

// bits returns the class of the machine's files, as 64.
func (m *Machine) bits() int { return int(8 * m.Word) }

// Uname returns the machine's name as uname -m prints it.
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

// Place names where an argument is: in a register or on the stack.
func (m *Machine) Place(n uint8) string {
	if n >= site.StackWord && n != site.NoReg {
		return fmt.Sprintf("stack+%d", uint64(n-site.StackWord+1)*m.Word)
	}
	return m.register(n)
}

// MachineOf finds the machine of a program by its head. The error wraps
// ErrMachine and says what the program is instead.
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

// machineName names the machine of a file.
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
