package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/remote"
)

// remoteFlags select a request to the rtrace-bpf that traces a process.
type remoteFlags struct {
	toggle, mark int    // processes; 0 for none
	name         string // of the mark
}

func (r *remoteFlags) any() bool { return r.toggle != 0 || r.mark != 0 }

// take reads the name of the mark from rest, the arguments that belong to no flag.
func (r *remoteFlags) take(rest []string) error {
	switch {
	case r.toggle != 0 && r.mark != 0:
		return errors.New("name one of --toggle and --mark")
	case r.toggle != 0 && len(rest) > 0:
		return unexpected(rest[0])
	case r.mark != 0 && (len(rest) != 1 || rest[0] == ""):
		return errors.New("--mark takes a process and the name of the mark: rtrace-bpf mark PID NAME")
	case r.mark != 0:
		r.name = rest[0]
	}
	q := r.request()
	return q.Check()
}

func (r *remoteFlags) request() remote.Request {
	return remote.Request{PID: r.toggle + r.mark, Mark: r.name}
}

// send sends the request, and prints the answers to w unless quiet.
func (r *remoteFlags) send(ctx context.Context, w io.Writer, quiet bool) error {
	answers, err := remote.Send(ctx, r.request())
	if !quiet {
		for _, text := range answers {
			cli.Message(w, slog.LevelInfo, name, text)
		}
	}
	if errors.Is(err, remote.ErrNotTraced) {
		return cli.WithHint(err, "run this as the user who traces it, or as root, in the same network namespace")
	}
	return err
}

// toggleVerb switches tracing off and on.
func toggleVerb() verb {
	return ownVerb("toggle", &cli.Page{
		Summary:  "switch tracing of a process off, or on again",
		Synopsis: []string{"PID"},
		About: "Sends a request to the rtrace-bpf that records process PID, and waits for its answer: until the files are complete, or the probes are attached. " +
			"All processes of that rtrace-bpf are switched. While tracing is off, they have no probes. " +
			"Each time tracing is switched on, a new file begins, which does not contain blocks that were allocated before.\n\n" +
			"Run it as the user who runs the other rtrace-bpf, or as root, in the same network namespace. SIGUSR1 to the other rtrace-bpf does the same.",
		Examples: []cli.Example{
			{Does: "trace ten seconds of a recording that began with --start-paused", Command: "sudo rtrace-bpf toggle 4711; sleep 10; sudo rtrace-bpf toggle 4711"},
			{Does: "switch tracing off, and do not print the answer", Command: "sudo rtrace-bpf toggle -q 4711"},
		},
		Exit: plainExit,
	}, func(g *flags.Groups) runFunc {
		r, quiet := remoteSetup(g)
		return func(ctx context.Context, s cli.Streams, args []string, _ settings) error {
			pid, rest, err := namedPID(r.mark, args, "rtrace-bpf toggle PID")
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("%s: toggle takes one process", cli.Word(rest[0]))
			}
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			return (&remoteFlags{toggle: pid}).send(ctx, s.Err, *quiet)
		}
	})
}

// markVerb sets a mark.
func markVerb() verb {
	return ownVerb("mark", &cli.Page{
		Summary:  "set a mark in the trace of a process",
		Synopsis: []string{"PID NAME"},
		About: "Sends a request to the rtrace-bpf that records process PID, and waits until the mark is set. Whatever the process does from then on follows the mark in the trace. " +
			"rtrace leaks --from and --to select a part of a trace by its marks.\n\n" +
			"Run it as the user who runs the other rtrace-bpf, or as root, in the same network namespace. SIGUSR2 to the other rtrace-bpf sets a mark with a number as its name.",
		Examples: []cli.Example{
			{Does: "mark the end of the start-up", Command: "sudo rtrace-bpf mark 4711 loaded"},
			{Does: "see what is left of the blocks that were allocated since a mark", Command: "rtrace leaks --from loaded rtrace-raw-4711-0"},
		},
		Exit: plainExit,
	}, func(g *flags.Groups) runFunc {
		r, quiet := remoteSetup(g)
		return func(ctx context.Context, s cli.Streams, args []string, _ settings) error {
			pid, rest, err := namedPID(r.mark, args, "rtrace-bpf mark PID NAME")
			if err == nil && (len(rest) != 1 || rest[0] == "") {
				err = errors.New("a mark needs one name: rtrace-bpf mark PID NAME")
			}
			if err == nil {
				r.mark = pid
				err = r.take(rest)
			}
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			return r.send(ctx, s.Err, *quiet)
		}
	})
}

// remoteSetup declares the flags of toggle and mark. The process goes to the field mark.
func remoteSetup(g *flags.Groups) (r *remoteFlags, quiet *bool) {
	r = new(remoteFlags)
	f := g.Group("Flags")
	f.VarP((*flags.PID)(&r.mark), "pid", "p", "the process, instead of the argument `PID`")
	quiet = f.BoolP("quiet", "q", false, "print errors only, and no answer")
	return r, quiet
}

// namedPID returns the process that a flag or else the first argument names, and the other
// arguments. given is the flag's, 0 for none.
func namedPID(given int, args []string, usage string) (pid int, rest []string, err error) {
	switch {
	case given != 0:
		return given, args, nil
	case len(args) == 0:
		return 0, nil, fmt.Errorf("the process is missing: %s", usage)
	}
	if err := (*flags.PID)(&pid).Set(args[0]); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", cli.Word(args[0]), err)
	}
	return pid, args[1:], nil
}
