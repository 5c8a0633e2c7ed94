package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer"
)

// followConfig is who is traced beside the processes that are named: what these make.
type followConfig struct {
	on   bool
	most int // processes at once; 0 until it is decided
}

// mostFollowed is how many processes are traced at once unless the user says it.
const mostFollowed = 32

func (c *followConfig) declare(f *pflag.FlagSet) {
	f.BoolVarP(&c.on, "follow-forks", "f", false, "trace the processes that they make from now on as well, and those that these make, each into a trace of its own; they are held by ptrace for that, each new one until its probes are in")
	f.Var(flags.Number(&c.most, 0, 0, flags.Unbounded), "max-processes", fmt.Sprintf("with --follow-forks, trace at most `N` at once; what comes above that runs untraced, and is told (default %d, less where buffers for so many would be too large)", mostFollowed))
}

// declareOriginals declares the names that sp-rtrace has for it.
func (c *followConfig) declareOriginals(g *flags.Groups, f *pflag.FlagSet) {
	f.BoolVarP(&c.on, "managed", "m", false, "")
	g.Alias("managed", "manage-preproc")
}

func (c *followConfig) check(all *config) error {
	switch {
	case !c.on && c.most != 0:
		return errors.New("--max-processes goes with --follow-forks")
	case !c.on:
		return nil
	case all.dotnet.on:
		return errors.New("--dotnet asks one process: leave --follow-forks out")
	case all.toStdout():
		return errors.New("-o - takes one trace, and --follow-forks writes one for each process: name a directory")
	}
	if info, err := os.Stat(all.directory()); err == nil && !info.IsDir() || errors.Is(err, os.ErrNotExist) && !endsAsDirectory(all.output) {
		return fmt.Errorf("-o %s takes one trace, and --follow-forks writes one for each process: name a directory, as -o %s/, which is made if it is missing", all.output, all.output)
	}
	return nil
}

// share divides the memory for buffers: half is for the processes that are named, half
// for those that they make, of which there may be so many at once.
func (c *followConfig) share(o *tracer.Options, named int) error {
	if !c.on {
		return nil
	}
	if c.most > 0 {
		return checkShares(o, 2*max(c.most, named), "select fewer, or say with --max-processes how many at most")
	}
	for c.most = mostFollowed; c.most > 1 && checkShares(o, 2*c.most, "") != nil; {
		c.most /= 2
	}
	return checkShares(o, 2*named, "select fewer")
}

// checkShares says why so many tracers cannot share the memory for buffers.
func checkShares(o *tracer.Options, shares int, hint string) error {
	some := *o
	some.Shares = shares
	if err := some.CheckShares(); err != nil {
		return cli.WithHint(err, hint+", or with --ring-size how large the buffers shall be")
	}
	return nil
}
