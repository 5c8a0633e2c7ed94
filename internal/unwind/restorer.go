package unwind

import (
	"bytes"
	"errors"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/trace"
)

// restorers is the code by which a signal handler returns to the kernel: the
// system call rt_sigreturn and nothing else. The stack pointer is at the
// kernel's signal frame wherever it runs.
var restorers = map[cfi.Machine][][]byte{
	cfi.AMD64: {
		{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}, // mov $15, %rax; syscall
		{0xb8, 15, 0, 0, 0, 0x0f, 0x05},             // mov $15, %eax; syscall
	},
	cfi.ARM64: {
		{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, // mov x8, #139; svc #0
	},
}

// Limits of the search for restorers.
const (
	chunk        = 1 << 20 // bytes of code at a time
	maxSearched  = 1 << 28 // bytes of code in all
	maxRestorers = 16
)

// lead is how many bytes of an FDE may come before a restorer, which is a
// return address although nothing called it: unwinders look at the byte before.
const lead = 4

// signalRule returns the rule for code whose FDE is marked as that of a signal
// frame. Only the kernel's frames are known, so the code has to be a restorer.
func (b *builder) signalRule(f *function) (Rule, error) {
	code, err := b.file.Code(f.start, 2*alignment)
	if err != nil {
		return RuleUnsupported, notSyntax(err)
	}
	for _, r := range restorers[b.machine] {
		if at := bytes.Index(code, r); at >= 0 && at <= lead {
			return RuleSignal, nil
		}
	}
	return RuleUnsupported, nil
}

// findRestorers adds the restorers of a C library that gives them no FDE. A
// file that needs no other library is or has its own C library.
func (b *builder) findRestorers(code []symbol.Segment) error {
	left := uint64(maxSearched)
	for _, s := range code {
		for at := uint64(0); at < s.FileSize && left > 0; at += chunk {
			// A restorer may begin in one chunk and end in the next.
			n := min(s.FileSize-at, chunk+2*alignment, left)
			left -= n
			data, err := b.file.Code(s.Addr+at, n)
			if err != nil {
				return notSyntax(err)
			}
			b.search(s.Addr+at, data)
		}
	}
	return nil
}

// search adds the restorers that begin in the first chunk of the code at addr.
func (b *builder) search(addr uint64, code []byte) {
	for _, r := range restorers[b.machine] {
		for at := 0; len(b.functions)-b.Functions < maxRestorers; at += len(r) {
			i := bytes.Index(code[at:], r)
			if at += i; i < 0 || at >= chunk {
				break
			}
			start := addr + uint64(at)
			b.functions = append(b.functions, function{start: max(start, 1) - 1, end: start + uint64(len(r)), section: restorer})
		}
	}
}

// notSyntax returns the error unless it says that the file is malformed: then
// there is no code to look at.
func notSyntax(err error) error {
	if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
		return nil
	}
	return err
}
