package process

import (
	"fmt"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/host"
)

// Ends of the memory of 32-bit programs on a 64-bit machine: the usual one, and that with
// the personality for 3 GiB (STACK_TOP of arch/x86/include/asm/page_64_types.h).
const (
	narrowEnd   = 0xffffe000
	narrowEnd3G = 0xc0000000
	limit3G     = 0x8000000 // ADDR_LIMIT_3GB of a personality
)

// stepsArea is the name in /proc/PID/maps of the page in which the kernel single-steps
// copies of probed instructions.
const stepsArea = "[uprobes]"

// checkSteps refuses 32-bit programs that would hang at the first probe; the error wraps
// ErrMachine. The kernel maps a page for single steps at the end of the program's memory.
// If the stack is there, it looks for another place. Kernels without NarrowSteps look among
// the addresses of 64-bit programs, find none, and the process hits the probe again, for
// ever.
func (t *Target) checkSteps(features host.Features) error {
	if !t.Narrow() {
		return nil
	}
	end := uint64(narrowEnd)
	if personality, err := proc.Personality(t.PID); err == nil && personality&limit3G != 0 {
		end = narrowEnd3G
	}
	all, err := proc.Maps(t.PID)
	if err != nil {
		return ProcessError(t.PID, err)
	}
	taken := false
	for i := range all {
		if all[i].Path == stepsArea {
			return nil
		}
		taken = taken || all[i].Start < end && all[i].End >= end
	}
	if !taken || features.NarrowSteps() == nil {
		return nil
	}
	return fmt.Errorf("process %d (%s) %w: its stack is at the very top of its memory, where this kernel wants a page for probes in 32-bit programs; it would hang at the first one. Start it with address randomization, or use Linux 7.0 or a stable kernel from the middle of 2026 on", t.PID, t.Name, host.ErrMachine)
}
