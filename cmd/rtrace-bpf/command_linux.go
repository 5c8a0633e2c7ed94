package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/tracer/launch"
)

// Exit codes of rtrace-bpf itself when it traces a command: those of env, nice, nohup and
// timeout. Otherwise its exit status is that of the command.
const (
	ownFailure    cli.ExitCode = 125
	notExecutable cli.ExitCode = 126
	notFound      cli.ExitCode = 127
)

// checkCommand returns an error if a command cannot be traced as the flags demand.
func checkCommand(c *config) error {
	switch {
	case len(c.command) == 0:
		return errors.New("the command is missing: write it after --")
	case !c.target.selection.Empty():
		return errors.New("a command is traced alone: leave -p, --comm, --cgroup and --uid out")
	case c.dotnet.on:
		return errors.New("--dotnet needs a running process: start the program first, and name it with -p")
	case c.output.toStdout():
		return errors.New("standard output is the command's: name a file, or a descriptor of your own with -o /dev/fd/3 3>&1")
	}
	return nil
}

// recordLaunched starts the command, records it and returns its exit status, or the code for
// what went wrong.
func recordLaunched(ctx context.Context, s cli.Streams, c *config, env settings) cli.ExitCode {
	status, err := recordCommand(ctx, s, c, env)
	cli.Report(s.Err, name, err)
	return commandExit(status, err)
}

// commandExit returns the exit code for a command that was traced: its own status, or the code for
// what went wrong.
func commandExit(status int, err error) cli.ExitCode {
	switch {
	case err == nil, errors.Is(err, cli.ErrIncomplete):
		return cli.ExitCode(status)
	case errors.Is(err, recording.ErrLost):
		return cli.Failed
	case errors.Is(err, launch.ErrNotFound):
		return notFound
	case errors.Is(err, launch.ErrNotExecutable):
		return notExecutable
	}
	return ownFailure
}

// recordCommand starts the command and records it. It returns the command's exit status
// when that has ended, and an error about what went wrong or is missing.
func recordCommand(ctx context.Context, s cli.Streams, c *config, env settings) (code int, err error) {
	r := newReporter(c, s, false) // no progress: the terminal belongs to the command
	o, err := c.recording(s, r, env)
	if err != nil {
		return 0, err
	}
	command, err := launch.Start(c.command, launch.Options{Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Nice: env.nice})
	if err != nil {
		return 0, err
	}
	if env.launched != nil {
		env.launched.Store(true)
		// While the trace has no reader, the command is held, and a terminal's keys end the wait.
		r.held = func(on bool) { env.launched.Store(!on) }
		signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT) // the command gets it, as it gets SIGINT
	}
	defer context.AfterFunc(ctx, func() { command.Signal(syscall.SIGTERM) })()
	o.PIDs, o.Held = []int{command.PID()}, recording.Command{Command: command}
	if c.limits.dryRun {
		err = r.dryRun(o, s)
		command.Kill()
		command.Wait()
		return 0, err
	}
	err = r.record(ctx, o)
	if errors.Is(err, launch.ErrEnded) {
		err = cli.Incompletef("%w: there is no trace", launch.ErrEnded)
	}
	ended := make(chan int, 1)
	go func() { ended <- command.Wait() }()
	select {
	case code = <-ended:
	case <-env.hurry:
		return 0, errors.Join(err, errLeft)
	}
	return code, err
}

// errLeft is the error if rtrace-bpf ends before the command.
var errLeft = errors.New("ended at once by a second signal: the command may still be running, without probes")
