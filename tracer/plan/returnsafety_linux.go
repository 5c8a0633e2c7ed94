package plan

import (
	"fmt"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/process"
)

// checkReturnProbes returns an error that wraps host.ErrReturnProbes if return probes would
// kill the process: one under seccomp or with a shadow stack, on kernels that do not support
// these together.
func checkReturnProbes(t *process.Target) error {
	if t.Machine.Trap {
		return nil
	}
	pid := t.PID
	status, err := proc.ReadStatus(pid)
	if err != nil {
		return process.ProcessError(pid, err)
	}
	if status.Seccomp > proc.SeccompDisabled {
		if err := host.SurvivesSeccomp(); err != nil {
			return fmt.Errorf("process %d runs under seccomp: %w", pid, err)
		}
	}
	if status.ShadowStack() {
		if err := host.KnowsShadowStacks(); err != nil {
			return fmt.Errorf("process %d has a shadow stack: %w", pid, err)
		}
	}
	return nil
}
