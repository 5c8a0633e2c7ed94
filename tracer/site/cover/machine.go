package cover

import (
	"fmt"

	"rtrace-bpf/tracer/site"
)

// machine is an instruction set and its ABI.
type machine interface {
	// decode decodes the instruction at the start of code, which is at address pc.
	decode(code []byte, pc uint64) insn
	arguments() []location
	result() location
	stackPointer() location
	framePointer() location
	// clobbered returns the registers that a call may change.
	clobbered() locationSet
	// passed returns the registers whose values a call may read.
	passed() locationSet
	// readable returns the registers that a probe can read.
	readable() locationSet
	// link returns the register with the return address, or nowhere if it is on the stack.
	link() location
}

func machineOf(a site.Arch) (machine, error) {
	switch a {
	case site.AMD64:
		return amd64{}, nil
	case site.ARM64:
		return arm64{}, nil
	}
	return nil, fmt.Errorf("paths of %v are not supported", a)
}

func setOf(locations ...location) (s locationSet) {
	for _, l := range locations {
		s.add(l)
	}
	return s
}
