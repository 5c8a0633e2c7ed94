package machine

import (
	"os/exec"
	"syscall"
)

// asGroup makes a command and all that it starts end together: virtme-ng runs
// QEMU through other programs.
func asGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
