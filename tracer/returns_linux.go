package tracer

import (
	"fmt"

	"rtrace-bpf/internal/linux/proc"
)

// checkReturnProbes says whether return probes are safe in the process.
func checkReturnProbes(t *target) error {
	if t.machine.trap {
		return nil
	}
	pid := t.pid
	status, err := proc.ReadStatus(pid)
	if err != nil {
		return processError(pid, err)
	}
	if status.Seccomp > proc.SeccompDisabled {
		if err := survivesSeccomp(); err != nil {
			return fmt.Errorf("process %d runs under seccomp: %w", pid, err)
		}
	}
	if status.ShadowStack() {
		if err := knowsShadowStacks(); err != nil {
			return fmt.Errorf("process %d has a shadow stack: %w", pid, err)
		}
	}
	return nil
}
