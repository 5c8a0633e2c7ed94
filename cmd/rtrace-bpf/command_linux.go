package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/launch"
)

// Exit codes where a command is traced, whose own status is that of rtrace-bpf
// otherwise: those of env, nice, nohup and timeout.
const (
	ownFailure    cli.ExitCode = 125
	notExecutable cli.ExitCode = 126
	notFound      cli.ExitCode = 127
)

// checkCommand says why a command cannot be traced as the flags ask for.
func (c *config) checkCommand() error {
	switch {
	case len(c.command) == 0:
		return errors.New("the command is missing: write it after --")
	case !c.selection.Empty():
		return errors.New("a command is traced alone: leave -p, --comm, --cgroup and --uid out")
	case c.dotnet.on:
		return errors.New("--dotnet asks a running process: start the program first, and name it with -p")
	case c.toStdout():
		return errors.New("standard output is the command's: name a file, or a descriptor of your own with -o /dev/fd/3 3>&1")
	}
	return nil
}

// launched starts the command, records it and returns its exit status, or the code for
// what went wrong.
func launched(ctx context.Context, s cli.Streams, c *config, env settings) cli.ExitCode {
	status, err := recordCommand(ctx, s, c, env)
	cli.Report(s.Err, name, err)
	switch {
	case err == nil, errors.Is(err, cli.ErrIncomplete):
		return cli.ExitCode(status)
	case errors.Is(err, errStrict):
		return cli.Failed
	case errors.Is(err, launch.ErrNotFound):
		return notFound
	case errors.Is(err, launch.ErrNotExecutable):
		return notExecutable
	}
	return ownFailure
}

// recordCommand returns the exit status of the command, once that has ended, and what
// went wrong or is missing.
func recordCommand(ctx context.Context, s cli.Streams, c *config, env settings) (code int, err error) {
	options, err := c.options()
	if err != nil {
		return 0, err
	}
	command, err := launch.Start(c.command, launch.Options{Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, Nice: env.nice})
	if err != nil {
		return 0, err
	}
	if env.launched != nil {
		env.launched.Store(true)
		signal.Notify(make(chan os.Signal, 1), syscall.SIGQUIT) // as SIGINT: the command has it, too
	}
	defer context.AfterFunc(ctx, func() { command.Signal(syscall.SIGTERM) })()
	r := &recording{
		config: c, streams: s, options: options, hurry: env.hurry, pids: []int{command.PID()}, held: ownCommand{command},
		status: status{w: s.Err}, // the terminal is the command's: there is no line of progress
	}
	if env.launched != nil {
		// Until the trace has a reader, a terminal's keys end the waiting: the command is held.
		r.waiting = func(on bool) { env.launched.Store(!on) }
	}
	if c.dryRun {
		err = r.dryRun()
		command.Kill()
		command.Wait()
		return 0, err
	}
	if err = c.follow.share(&r.options, 1); err != nil {
		return 0, errors.Join(err, r.letGo(false))
	}
	err = r.run(ctx)
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

// errLeft says that nobody waits for the command any more.
var errLeft = errors.New("ended at once by a second signal: the command may still be running, without probes")

// plan decides what to probe. A process that is held may have to run a little until its
// allocator is there.
func (x *session) plan(options tracer.Options) (*tracer.Plan, error) {
	switch {
	case x.made != nil:
		return x.made, nil
	case x.held == nil:
		return tracer.NewPlan(options)
	}
	var why error
	for {
		there, err := x.held.Next()
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, why
		}
		plan, err := tracer.NewPlan(options)
		if !errors.Is(err, tracer.ErrNoAllocator) && !errors.Is(err, tracer.ErrStripped) {
			return plan, err
		}
		why = err
	}
}
