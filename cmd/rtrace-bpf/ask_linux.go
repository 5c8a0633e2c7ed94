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

// askConfig is what another rtrace-bpf is told.
type askConfig struct {
	toggle, mark int // processes; 0 for none
	name         string
}

func (a *askConfig) declare(f *pflag.FlagSet) {
	f.VarP((*flags.PID)(&a.toggle), "toggle", "t", "have the rtrace-bpf that traces process `PID` switch tracing off, or on again; returns when the files are complete, or the probes are in")
	f.Var((*flags.PID)(&a.mark), "mark", "have it set a mark, --mark `PID` NAME: what the process does from then on comes behind the mark in the trace")
}

func (a *askConfig) any() bool { return a.toggle != 0 || a.mark != 0 }

// take takes the arguments that are no flags.
func (a *askConfig) take(rest []string) error {
	switch {
	case a.toggle != 0 && a.mark != 0:
		return errors.New("name one of --toggle and --mark")
	case a.toggle != 0 && len(rest) > 0:
		return unexpected(rest[0])
	case a.mark != 0 && (len(rest) != 1 || rest[0] == ""):
		return errors.New("--mark takes a process and the name of the mark: --mark PID NAME")
	case a.mark != 0:
		a.name = rest[0]
	}
	r := a.request()
	return r.Check()
}

func (a *askConfig) request() remote.Request {
	return remote.Request{PID: a.toggle + a.mark, Mark: a.name}
}

// tell tells it.
func (a *askConfig) tell(ctx context.Context, w io.Writer, quiet bool) error {
	said, err := remote.Send(ctx, a.request())
	if !quiet {
		for _, text := range said {
			fmt.Fprintln(w, printable.Text(name+": "+text))
		}
	}
	if errors.Is(err, remote.ErrNotTraced) {
		return cli.WithHint(err, "ask as the user who traces it, or as root, in the same network namespace")
	}
	return err
}
