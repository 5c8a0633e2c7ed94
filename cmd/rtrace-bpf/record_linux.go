package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/selection"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/dotnet"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/recording/swapevents"
	"rtrace-bpf/internal/symbol/resolve"
)

// recordVerb is the verb that records processes.
func recordVerb(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode {
	var c config
	return c.run(ctx, s, args, env, recordPage)
}

// recordUnnamed records without a verb. Its brief help is that of the program.
func recordUnnamed(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode {
	var c config
	return c.run(ctx, s, args, env, func() *cli.Page {
		if c.flags.Topic() == cli.Brief {
			return overview()
		}
		return recordPage()
	})
}

// run parses the command line and carries it out. page returns the help.
func (c *config) run(ctx context.Context, s cli.Streams, args []string, env settings, page func() *cli.Page) cli.ExitCode {
	err := c.parse(args, env)
	s, flush := c.general.log.apply(s)
	defer flush()
	if err == nil {
		err = c.checkTerminal(s)
	}
	if err == nil && !c.general.quiet {
		for _, w := range c.general.warnings {
			cli.Message(s.Err, slog.LevelWarn, name, "warning: "+w)
		}
	}
	if c.command != nil && err == nil && !c.general.version {
		return recordLaunched(ctx, s, c, env)
	}
	switch {
	case errors.Is(err, pflag.ErrHelp):
		err = page().WriteHelp(s.Out, c.flags.Topic())
	case err != nil:
		err = misused(err)
	case c.general.version:
		_, err = fmt.Fprintln(s.Out, name, cli.BuildVersion())
	case c.modules.list:
		err = printModules(s.Out)
	case c.remote.any():
		err = c.remote.send(ctx, s.Err, c.general.quiet)
	case c.dotnet.alone():
		err = recordDotnet(ctx, s, c, env)
	case c.target.wait:
		err = recordNext(ctx, s, c, env)
	default:
		err = recordAll(ctx, s, c, env)
	}
	code := cli.Report(s.Err, name, err)
	if code == cli.Usage && (c.command != nil || slices.Contains(args, "--")) {
		return ownFailure
	}
	return code
}

// recordAll records the selected processes.
func recordAll(ctx context.Context, s cli.Streams, c *config, env settings) error {
	pids, err := c.selection(name)
	if err != nil {
		return err
	}
	if c.dotnet.native {
		if err := checkOneRuntime(pids); err != nil {
			return err
		}
	}
	r := newReporter(c, s, s.ErrTerminal)
	o, err := c.recording(s, r, env)
	if err != nil {
		return err
	}
	o.PIDs, o.Tracer.Shares = pids, len(pids)
	if c.limits.dryRun {
		return r.dryRun(o, s)
	}
	if err := c.checkSeveral(pids); err != nil {
		return err
	}
	if err := checkShares(&o.Tracer, o.Tracer.Shares, "select fewer"); err != nil {
		return err
	}
	if c.target.follow.on {
		// A stopped rtrace-bpf would hold up the processes that it follows.
		signal.Notify(make(chan os.Signal, 1), unix.SIGTSTP)
	}
	return r.record(ctx, o)
}

// selection returns the selected processes. verb is the command line that waits for one.
func (c *config) selection(verb string) ([]int, error) {
	s := &c.target.selection
	pids, err := s.Find()
	if errors.Is(err, selection.ErrNone) && len(s.Comms) == 1 {
		return nil, cli.WithHint(err, "to trace the next one that starts: "+verb+" --wait --comm "+cli.Word(s.Comms[0]))
	}
	return pids, err
}

// checkSeveral returns an error if the output has no room for a trace of each process.
func (c *config) checkSeveral(pids []int) error {
	o := &c.output
	switch {
	case len(pids) == 1:
		return nil
	case o.toStdout():
		return cli.Usagef("-o - takes one trace, and %d processes are selected: name a directory", len(pids))
	case o.takesOne():
		return cli.Usagef("-o %s takes one trace, and %d processes are selected: name a directory, as -o %s/, which is created if it is missing", o.path, len(pids), o.path)
	}
	return nil
}

// recording returns the options of a recording, except for its processes.
func (c *config) recording(s cli.Streams, r *reporter, env settings) (recording.Options, error) {
	tracing, err := c.options()
	if err != nil {
		return recording.Options{}, err
	}
	if !tracing.NoLive || c.output.snapshots.Every > 0 {
		limitGarbage()
	}
	o := recording.Options{
		Tracer: tracing, Output: c.files(s, r), Format: c.format.name, Encoding: c.encoding(), Unbuffered: c.output.unbuffered,
		Names: c.names(), HeapInfo: c.allocators.heapInfo, Pages: c.pagemapped(), Leaks: c.format.swap.machine.leaks,
		PerfMap: c.dotnet.perfMap, Snapshots: c.output.snapshots.options(), Duration: c.limits.duration, Paused: c.limits.startPaused, Strict: c.limits.strict,
		Report: r, Line: r.line, Hurry: env.hurry, Exit: func() { os.Exit(int(cli.Failed)) },
	}
	o.Callers, _ = resolve.ParsePolicy(c.format.mtrc.callers) // the flag accepts valid policies only
	if c.format.name == "swap" {
		o.Swap = &swapevents.Options{Period: c.format.swap.machine.period}
		if o.Swap.Dialect, err = swap.ParseDialect(c.format.swap.dialect); err != nil {
			return o, err
		}
	}
	if c.dotnet.native {
		events, err := c.dotnet.session()
		if err != nil {
			return o, err
		}
		o.Runtime = &events
	}
	return o, nil
}

// files returns where traces go.
func (c *config) files(s cli.Streams, r *reporter) output.Options {
	o := output.Options{
		Path: c.output.path, Suffix: encoder.Suffix(c.format.name), Side: c.output.side, Unwritten: c.output.snapshots.only, MaxSize: int64(c.limits.maxSize),
		Copies: slices.Clone(c.output.attach), Waiting: r.waiting,
	}
	if c.output.toStdout() {
		o.Stdout, o.Terminal = s.Out, s.OutTerminal && c.format.isText()
	}
	if p := &c.output.postproc; p.on {
		o.Suffix, o.Postproc = ".txt", &output.Postproc{Args: strings.Fields(p.options), Err: s.Err}
	}
	return o
}

// checkOneRuntime returns an error unless one process is selected, for --dotnet.
func checkOneRuntime(pids []int) error {
	if len(pids) != 1 {
		return cli.Usagef("--dotnet takes one process, and %d are selected", len(pids))
	}
	return nil
}

// recordDotnet records the events of a .NET runtime alone.
func recordDotnet(ctx context.Context, s cli.Streams, c *config, env settings) error {
	pids, err := c.target.selection.Find()
	if err == nil {
		err = checkOneRuntime(pids)
	}
	if err != nil {
		return err
	}
	events, err := c.dotnet.session()
	if err != nil {
		return err
	}
	r := newReporter(c, s, s.ErrTerminal)
	return dotnet.Capture(ctx, pids[0], &dotnet.Options{
		Events: events, Output: c.files(s, r), Format: c.format.name, Encoding: c.encoding(), Duration: c.limits.duration,
		Line: r.line, Ready: r.Ready, Hurry: env.hurry,
	})
}

// newLine returns the line of status of the command. terminal is set if standard error may
// show progress.
func (c *config) newLine(s cli.Streams, terminal bool) *status.Line {
	return status.New(status.Options{
		Out: s.Err, Program: name, Progress: terminal && !c.general.quiet && c.general.log.format != jsonLog, Quiet: c.general.quiet, Verbose: c.general.verbose,
	})
}
