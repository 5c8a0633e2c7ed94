package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// suspension stops the program's process group, as Ctrl-Z does in a terminal, until the shell
// continues it.
type suspension struct{}

var _ tea.ExecCommand = suspension{}

// unstopped is how long a suspension waits for its process group to stop. The kernel does not stop
// a group that no shell could continue, such as that of ssh HOST rtrace-bpf top.
const unstopped = 500 * time.Millisecond

// Run implements tea.ExecCommand. It returns when the program goes on.
func (suspension) Run() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return err
	}
	limit := time.NewTimer(unstopped)
	defer limit.Stop()
	select {
	case <-continued:
	case <-limit.C:
	}
	return nil
}

// SetStdin implements tea.ExecCommand.
func (suspension) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (suspension) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (suspension) SetStderr(io.Writer) {}
