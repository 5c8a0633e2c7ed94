package tracer

import (
	"debug/elf"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/unwind/reference"
	"rtrace-bpf/tracer/site"
)

// machine is a kind of programs that can be traced here. There is one for each
// machine whose programs the kernel runs; see machines.
type machine struct {
	elf  elf.Machine
	arch site.Arch
	name string // as uname -m says for such programs; "" for the kernel's own
	word uint64 // bytes of a pointer
	call uint64 // bytes of a direct call

	// register names a register by the number that instructions give it.
	register func(n uint8) string
	// registers returns those of a raw stack by DWARF number, as they are behind
	// the return of the probed function.
	registers func(raw *probeRawStack) reference.Registers
	// whole and bounded read the programs, the latter for kernels without bpf_loop.
	whole, bounded func() (*ebpf.CollectionSpec, error)

	// arenaHeap is how much glibc reserves for each heap of an arena other than
	// the first, at a multiple of it (HEAP_MAX_SIZE). It makes only the beginning
	// accessible.
	arenaHeap uint64
	// trap says that functions with return probes return through a trap on every
	// kernel: see checkReturnProbes.
	trap bool
}

// bits returns the class of the machine's files, as 64.
func (m *machine) bits() int { return int(8 * m.word) }

// uname returns the machine's name as uname -m prints it.
func (m *machine) uname() string {
	if m.name != "" {
		return m.name
	}
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Machine[:])
}

// place names where an argument is: in a register or on the stack.
func (m *machine) place(n uint8) string {
	if n >= site.StackWord && n != site.NoReg {
		return fmt.Sprintf("stack+%d", uint64(n-site.StackWord+1)*m.word)
	}
	return m.register(n)
}

// machineOf finds the machine of a program by its head. The error wraps
// ErrMachine and says what the program is instead.
func machineOf(h proc.Head) (*machine, error) {
	for i := range machines {
		if m := &machines[i]; m.elf == h.Machine && m.bits() == h.Bits {
			return m, nil
		}
	}
	switch {
	case h.Machine == elf.EM_X86_64 && h.Bits == 32:
		return nil, fmt.Errorf("%w: it is an x32 program (x86-64 with 32-bit pointers)", ErrMachine)
	case h.Machine == elf.EM_ARM:
		return nil, fmt.Errorf("%w: it is a 32-bit program for ARM", ErrMachine)
	}
	return nil, fmt.Errorf("%w: it is a %d-bit program for %s", ErrMachine, h.Bits, machineName(h.Machine))
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
