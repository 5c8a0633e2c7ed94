package process

import (
	"fmt"
	"path/filepath"
	"strings"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/host"
)

// qemuGuests lists the machines for which QEMU has emulators of single programs, with
// a space around each. They are part of the emulators' names: qemu-arm, qemu-arm-static.
const qemuGuests = " aarch64 aarch64_be alpha arm armeb cris hexagon hppa i386 loongarch64 m68k microblaze microblazeel " +
	"mips mips64 mips64el mipsel mipsn32 mipsn32el nios2 or1k ppc ppc64 ppc64le riscv32 riscv64 s390x sh4 sh4eb " +
	"sparc sparc32plus sparc64 x86_64 xtensa xtensaeb "

// findMachine returns the machine that the process's program is for, or an error with the
// reason why the process cannot be traced: ErrEmulated, ErrMachine or ErrNoProcess.
func findMachine(pid int) (*Machine, error) {
	head, err := proc.ProgramHead(pid)
	if err != nil {
		return nil, ProcessError(pid, err)
	}
	if exe, ok := emulator(pid, head); ok {
		return nil, fmt.Errorf("process %d %w, %s: the calls that could be seen are the emulator's own", pid, host.ErrEmulated, printable.Name(exe))
	}
	m, err := MachineOf(head)
	if err != nil {
		return nil, fmt.Errorf("process %d %w", pid, err)
	}
	return m, nil
}

// emulator returns the path of the program that the process runs if that emulates another
// program. It recognises QEMU's emulators by their names, and any emulator that the kernel
// started in place of a program for another machine. An emulator with another name that
// was started by hand is treated like any other program.
func emulator(pid int, head proc.Head) (path string, ok bool) {
	exe, _, err := proc.Exe(pid)
	if err != nil {
		return "", false
	}
	if isEmulator(exe) {
		return exe, true
	}
	started, err := proc.StartedHead(pid, head)
	return exe, err == nil && started.Machine != head.Machine
}

// isEmulator reports whether path has the name of one of QEMU's emulators of single
// programs.
func isEmulator(path string) bool {
	guest, ok := strings.CutPrefix(filepath.Base(path), "qemu-")
	guest = strings.TrimSuffix(guest, "-static")
	return ok && strings.Contains(qemuGuests, " "+guest+" ")
}
