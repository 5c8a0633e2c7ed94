package unwind

import (
	"bytes"
	"errors"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/unwind/cfi"
	"rtrace-bpf/trace"
)

// restorer is code that is returned to without a call: the code with which a signal handler
// returns to the kernel (a single system call, with the stack pointer at the kernel's signal
// frame), or other such code.
type restorer struct {
	code []byte
	rule Rule
	// holds is the number of bytes of the code for which the rule is right, if not for all.
	// After them the stack pointer has moved.
	holds uint64
}

var restorers = map[cfi.Machine][]restorer{
	cfi.AMD64: {
		{code: []byte{0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}, rule: RuleSignal}, // mov $15, %rax; syscall
		{code: []byte{0xb8, 15, 0, 0, 0, 0x0f, 0x05}, rule: RuleSignal},             // mov $15, %eax; syscall
	},
	cfi.ARM64: {
		{code: []byte{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, rule: RuleSignal}, // mov x8, #139; svc #0
	},
	cfi.I386: {
		{code: []byte{0xb8, 173, 0, 0, 0, 0xcd, 0x80}, rule: RuleSignal},                    // mov $173, %eax; int $0x80
		{code: []byte{0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80}, rule: RuleSignalOld, holds: 1}, // pop %eax; mov $119, %eax; int $0x80
		// Functions of makecontext return to this code, which follows the end of its FDE: lea
		// (%esp,%ebx,4),%esp; cmpl $0,(%esp).
		{code: []byte{0x8d, 0x24, 0x9c, 0x83, 0x3c, 0x24, 0}, rule: RuleEnd},
	},
}

// ofRestorer converts the index of a restorer to the section number of a function, and back.
// The number is negative, so that it sorts before those with an FDE.
func ofRestorer(n int8) int8 { return -1 - n }

// Limits of the search for restorers.
const (
	chunk        = 1 << 20 // bytes of code that are read at a time
	maxSearched  = 1 << 28 // bytes of code in total
	maxRestorers = 16
)

// lead is how many bytes of an FDE may precede a restorer. A restorer is a return address
// although nothing called it, and unwinders look up the byte before it.
const lead = 4

// coverSignal makes the rows of an FDE that is marked as a signal frame. Only the kernel's
// frames are supported, so the code has to be a restorer.
func (b *builder) coverSignal(f *function) error {
	code, err := b.file.Code(f.start, 2*alignment)
	if err != nil {
		if err := notSyntax(err); err != nil {
			return err
		}
		code = nil
	}
	for i := range restorers[b.machine] {
		r := &restorers[b.machine][i]
		if at := bytes.Index(code, r.code); at >= 0 && at <= lead {
			return b.coverRestorer(f, r, uint64(at))
		}
	}
	return b.cover(f.start, f.end, RuleUnsupported)
}

// coverRestorer makes the rows of a function that has a restorer at the given offset from its
// start.
func (b *builder) coverRestorer(f *function, r *restorer, at uint64) error {
	end := f.end
	if r.holds > 0 {
		end = min(end, f.start+at+r.holds)
	}
	if err := b.cover(f.start, end, r.rule); err != nil || end == f.end {
		return err
	}
	return b.cover(end, f.end, RuleUnsupported)
}

// restores reports whether the file may have restorers without an FDE. A file that needs no
// other library is or contains a C library. glibc on I386 needs the dynamic loader, and its
// restorers have no FDE.
func (b *builder) restores() bool {
	if b.machine != cfi.I386 || b.file.Alone() {
		return b.file.Alone()
	}
	_, ok := b.file.Defined("sigaction")
	return ok
}

// findRestorers adds the restorers that have no FDE.
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
	for n, r := range restorers[b.machine] {
		for at := 0; len(b.functions)-b.Functions < maxRestorers; at += len(r.code) {
			i := bytes.Index(code[at:], r.code)
			if at += i; i < 0 || at >= chunk {
				break
			}
			start := addr + uint64(at)
			b.functions = append(b.functions, function{start: max(start, 1) - 1, end: start + uint64(len(r.code)), section: ofRestorer(int8(n))})
		}
	}
}

// notSyntax returns err, or nil if err reports that the file is malformed: then there is no
// code to search.
func notSyntax(err error) error {
	if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
		return nil
	}
	return err
}
