package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/tracer/launch"
)

// launched is a command that top has started.
type launched struct {
	*launch.Command
	output string // path of the file with what it prints; empty if that goes somewhere else
}

// launch starts the command. Its output must not mix with the view: with tables it goes to standard
// error, and to a file next to a screen, unless standard error is redirected.
func (t *topFlags) launch(o *recording.Options, s cli.Streams, env settings, screen bool) (*launched, error) {
	c := &t.config
	x := new(launched)
	files := [3]*os.File{os.Stdin, os.Stderr, os.Stderr}
	if screen {
		nothing, err := os.Open(os.DevNull) // keys are for the view
		if err != nil {
			return nil, err
		}
		defer nothing.Close()
		files[0] = nothing
		if s.ErrTerminal {
			out, err := createNumbered("rtrace-top-" + filepath.Base(c.command[0]))
			if err != nil {
				return nil, cli.WithHint(fmt.Errorf("create a file for the output of the command: %w", err), "redirect standard error: 2> FILE")
			}
			defer out.Close()
			files[1], files[2], x.output = out, out, out.Name()
		}
	}
	var err error
	x.Command, err = launch.Start(c.command, launch.Options{Files: files, Nice: env.nice})
	if err != nil {
		x.discard()
		return nil, err
	}
	if env.launched != nil && !screen {
		env.launched.Store(true)
		signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT) // the command gets it, as it gets SIGINT
	}
	o.PIDs, o.Held = []int{x.PID()}, recording.Command{Command: x.Command}
	return x, nil
}

// createNumbered creates a new file in the current directory, with the first number that is free.
func createNumbered(prefix string) (*os.File, error) {
	for n := 0; ; n++ {
		f, err := os.OpenFile(fmt.Sprintf("%s-%d.out", prefix, n), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// discard removes the file for the output if nothing was written to it.
func (x *launched) discard() {
	if info, err := os.Stat(x.output); x.output != "" && err == nil && info.Size() == 0 {
		_ = os.Remove(x.output) // an empty file harms nobody
	}
}

// commandEnded returns the error of a recording of a command.
func commandEnded(err error) error {
	if errors.Is(err, launch.ErrEnded) {
		return cli.Incompletef("%w: there is nothing to show", launch.ErrEnded)
	}
	return err
}

// terminate asks the command to end.
func (x *launched) terminate() { x.Signal(syscall.SIGTERM) }

// wait waits for the end of the command, and returns its exit status.
func (x *launched) wait(s cli.Streams, env settings) (status int, err error) {
	ended := make(chan int, 1)
	go func() { ended <- x.Wait() }()
	select {
	case status = <-ended:
	case <-env.hurry:
		return 0, errLeft
	}
	x.discard()
	if _, err := os.Stat(x.output); x.output != "" && err == nil {
		cli.Message(s.Err, slog.LevelInfo, name+" top", "the output of the command is in "+printable.Name(x.output))
	}
	return status, nil
}
