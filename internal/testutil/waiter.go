package testutil

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// waiters holds programs that only wait for a signal, for machines that no compiler here may
// support.
var waiters = map[elf.Class]map[elf.Machine][]byte{
	elf.ELFCLASS32: {
		// mov $29,%eax; int $0x80: pause; jmp back
		elf.EM_386: {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7},
		// mov $0x40000022,%eax; syscall: pause, for x32; jmp back
		elf.EM_X86_64: {0xb8, 34, 0, 0, 0x40, 0x0f, 0x05, 0xeb, 0xf7},
		// mov r7, #29; svc #0: pause; b back
		elf.EM_ARM: words(0xe3a0701d, 0xef000000, 0xeafffffc),
	},
	elf.ELFCLASS64: {
		// mov x0 to x4, #0; mov x8, #73; svc #0: ppoll; b back
		elf.EM_AARCH64: words(0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003, 0xd2800004, 0xd2800928, 0xd4000001, 0x17fffff9),
	},
}

func words(all ...uint32) []byte {
	var b []byte
	for _, w := range all {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// Waiter writes a program for a machine, which waits until it is killed, and returns its path.
// It has no C library and no sections.
func Waiter(t testing.TB, class elf.Class, machine elf.Machine) string {
	t.Helper()
	code := waiters[class][machine]
	if code == nil {
		t.Fatalf("no program that waits for %s of %s", machine, class)
	}
	const base, page = 0x400000, 0x10000
	head := elf.Header32{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 52, Ehsize: 52, Phentsize: 32, Phnum: 1,
	}
	if machine == elf.EM_ARM {
		head.Flags = 5 << 24 // kernels run no other version
	}
	copy(head.Ident[:], elf.ELFMAG)
	head.Ident[elf.EI_CLASS], head.Ident[elf.EI_DATA], head.Ident[elf.EI_VERSION] = byte(class), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	prog := elf.Prog32{Type: uint32(elf.PT_LOAD), Vaddr: base, Paddr: base, Flags: uint32(elf.PF_R | elf.PF_X), Align: page}
	var parts []any
	if class == elf.ELFCLASS32 {
		head.Entry = base + 84
		prog.Filesz = uint32(84 + len(code))
		prog.Memsz = prog.Filesz
		parts = []any{head, prog}
	} else {
		size := uint64(120 + len(code))
		parts = []any{
			elf.Header64{
				Ident: head.Ident, Type: head.Type, Machine: head.Machine, Version: head.Version,
				Entry: base + 120, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
			},
			elf.Prog64{Type: prog.Type, Flags: prog.Flags, Vaddr: base, Paddr: base, Filesz: size, Memsz: size, Align: page},
		}
	}
	var b []byte
	var err error
	for _, part := range append(parts, code) {
		if b, err = binary.Append(b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "waiter")
	if err := os.WriteFile(path, b, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// StartWaiter starts a program made by Waiter. It skips the test if the kernel cannot run such
// programs.
func StartWaiter(t testing.TB, path string) *Child {
	t.Helper()
	probe := exec.Command(path)
	if err := probe.Start(); err != nil {
		t.Skipf("SKIPPED-KERNEL: it does not run such programs: %v", err)
	}
	_ = probe.Process.Kill() // it does nothing else
	_ = probe.Wait()
	return Spawn(t, path)
}
