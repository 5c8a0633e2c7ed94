package machine

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// asGroup makes a command and everything that it starts end together: virtme-ng runs QEMU
// through other programs.
func asGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return endGroup(cmd) }
}

// endGroup kills what is left of a command that was started, even if the command itself has
// ended.
func endGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
