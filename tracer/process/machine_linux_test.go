package process

import (
	"debug/elf"
	"errors"
	"runtime"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/host"
)

// MachineOf finds the kinds of programs that can be traced on each machine, and its error
// names the others.
func TestMachineOf(t *testing.T) {
	for _, test := range []struct {
		on      string
		head    proc.Head
		refused string // the error; "": the program can be traced
	}{
		{"amd64", proc.Head{Bits: 64, Machine: elf.EM_X86_64}, ""},
		{"amd64", proc.Head{Bits: 32, Machine: elf.EM_386}, ""},
		{"amd64", proc.Head{Bits: 32, Machine: elf.EM_X86_64}, "cannot be traced here: it is an x32 program (x86-64 with 32-bit pointers)"},
		{"amd64", proc.Head{Bits: 64, Machine: elf.EM_AARCH64}, "cannot be traced here: it is a 64-bit program for ARM64"},
		{"arm64", proc.Head{Bits: 64, Machine: elf.EM_AARCH64}, ""},
		{"arm64", proc.Head{Bits: 32, Machine: elf.EM_ARM}, "cannot be traced here: it is a 32-bit program for ARM"},
		{"arm64", proc.Head{Bits: 32, Machine: elf.EM_386}, "cannot be traced here: it is a 32-bit program for x86"},
		{runtime.GOARCH, proc.Head{Bits: 32, Machine: 9999}, "cannot be traced here: it is a 32-bit program for machine 9999"},
	} {
		if test.on != runtime.GOARCH {
			continue
		}
		m, err := MachineOf(test.head)
		if test.refused == "" {
			if err != nil || m.ELF != test.head.Machine || m.bits() != test.head.Bits {
				t.Errorf("%+v: got %+v, %v", test.head, m, err)
			}
		} else if !errors.Is(err, host.ErrMachine) || err.Error() != test.refused {
			t.Errorf("%+v: error %v, want %s", test.head, err, test.refused)
		}
	}
}

// QEMU's emulators of single programs are recognised. Its emulators of whole machines are
// programs like any other.
func TestEmulators(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr/bin/qemu-aarch64": true, "/usr/bin/qemu-arm-static": true, "/usr/libexec/qemu-binfmt/qemu-x86_64": true, "qemu-sh4eb": true,
		"/usr/bin/qemu-system-x86_64": false, "/usr/bin/qemu-img": false, "/usr/bin/qemu-": false, "/usr/bin/arm": false,
		"/usr/bin/qemu-arm-static2": false, "/opt/qemu-arm/bin/tool": false,
	} {
		if got := isEmulator(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
