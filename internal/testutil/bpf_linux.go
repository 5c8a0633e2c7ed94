package testutil

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noBPF returns what prevents the use of BPF and uprobes, or nil. It tries both instead of
// checking the user and the kernel's version.
var noBPF = sync.OnceValue(func() error {
	if _, err := os.Stat("/sys/bus/event_source/devices/uprobe/type"); err != nil {
		return fmt.Errorf("the kernel has no uprobes: %w", err)
	}
	if err := loadEmptyProgram(); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			return fmt.Errorf("user %d may not load BPF programs (run as root, or with CAP_BPF and CAP_PERFMON): %w", os.Getuid(), err)
		}
		return fmt.Errorf("the kernel accepts no BPF program: %w", err)
	}
	return nil
})

// bpfInstruction is struct bpf_insn of include/uapi/linux/bpf.h.
type bpfInstruction struct {
	code      uint8
	registers uint8
	offset    int16
	immediate int32
}

// bpfProgLoad is the start of union bpf_attr for BPF_PROG_LOAD. The kernel takes the rest as
// zero.
type bpfProgLoad struct {
	programType      uint32
	instructionCount uint32
	instructions     uint64
	license          uint64
	logLevel         uint32
	logSize          uint32
	logBuffer        uint64
	kernelVersion    uint32
	flags            uint32
}

// loadEmptyProgram loads a program of the type that uprobes use, and closes it. It makes the
// system call itself because only package tracer may import the BPF library.
func loadEmptyProgram() error {
	program := [2]bpfInstruction{
		{code: unix.BPF_ALU64 | unix.BPF_MOV}, // r0 = 0
		{code: unix.BPF_JMP | unix.BPF_EXIT},
	}
	license := [...]byte{'G', 'P', 'L', 0}
	var pinner runtime.Pinner // the kernel gets addresses as numbers
	defer pinner.Unpin()
	pinner.Pin(&program)
	pinner.Pin(&license)
	attr := bpfProgLoad{
		programType:      unix.BPF_PROG_TYPE_KPROBE,
		instructionCount: uint32(len(program)),
		instructions:     uint64(uintptr(unsafe.Pointer(&program[0]))),
		license:          uint64(uintptr(unsafe.Pointer(&license[0]))),
	}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}
