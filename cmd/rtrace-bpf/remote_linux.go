package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/remote"
	"rtrace-bpf/internal/printable"
)

// remoteFlags select a request to the rtrace-bpf that traces a process.
type remoteFlags struct {
	toggle, mark int    // processes; 0 for none
	name         string // of the mark
}

func (r *remoteFlags) declare(f *pflag.FlagSet) {
	f.VarP((*flags.PID)(&r.toggle), "toggle", "t", "switch tracing of process `PID` off, or on again, in the rtrace-bpf that traces it; returns when the files are complete or the probes are attached")
	f.Var((*flags.PID)(&r.mark), "mark", "set a mark in the trace of a process: --mark `PID` NAME; whatever the process does from then on follows the mark in the trace")
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
		return errors.New("--mark takes a process and the name of the mark: --mark PID NAME")
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
			fmt.Fprintln(w, printable.Text(name+": "+text))
		}
	}
	if errors.Is(err, remote.ErrNotTraced) {
		return cli.WithHint(err, "run this as the user who traces it, or as root, in the same network namespace")
	}
	return err
}
