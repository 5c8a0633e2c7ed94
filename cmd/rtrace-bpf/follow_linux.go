package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer/plan"
)

// followFlags select whether the children of traced processes are traced.
type followFlags struct {
	on   bool
	most int // processes at the same time; 0 before share chooses it
}

// mostFollowed is the default limit on the number of processes traced at the same time.
const mostFollowed = 32

func (c *followFlags) declare(f *pflag.FlagSet) {
	f.BoolVarP(&c.on, "follow-forks", "f", false, "also trace the processes that the traced ones start from now on, and those that these start, each into its own trace; ptrace holds each new process until its probes are attached")
	f.Var(flags.Number(&c.most, 0, 0, flags.Unbounded), "max-processes", fmt.Sprintf("with --follow-forks, trace at most `N` processes at the same time; others run untraced, and rtrace-bpf reports them (default %d, less if the buffers would be too large)", mostFollowed))
}

// declareOriginals declares the names of these flags in sp-rtrace.
func (c *followFlags) declareOriginals(g *flags.Groups, f *pflag.FlagSet) {
	f.BoolVarP(&c.on, "managed", "m", false, "")
	g.Alias("managed", "manage-preproc")
}

func (c *followFlags) check(all *config) error {
	switch {
	case !c.on && c.most != 0:
		return errors.New("--max-processes goes with --follow-forks")
	case !c.on:
		return nil
	case all.dotnet.on:
		return errors.New("--dotnet traces one process: leave --follow-forks out")
	case all.output.toStdout():
		return errors.New("-o - takes one trace, and --follow-forks writes one for each process: name a directory")
	}
	if o := &all.output; o.takesOne() {
		return fmt.Errorf("-o %s takes one trace, and --follow-forks writes one for each process: name a directory, as -o %s/, which is created if it is missing", o.path, o.path)
	}
	return nil
}

// share checks that half of the memory for buffers suffices for the selected processes,
// and leaves half for those that they start. It chooses the limit on followed processes
// unless the user did. named is the number of selected processes.
func (c *followFlags) share(o *plan.Options, named int) error {
	if !c.on {
		return nil
	}
	if c.most > 0 {
		return checkShares(o, 2*max(c.most, named), "select fewer, or limit the number with --max-processes")
	}
	for c.most = mostFollowed; c.most > 1 && checkShares(o, 2*c.most, "") != nil; {
		c.most /= 2
	}
	return checkShares(o, 2*named, "select fewer")
}

// checkShares returns an error if the memory for buffers is too small for shares tracers.
func checkShares(o *plan.Options, shares int, hint string) error {
	some := *o
	some.Shares = shares
	if err := some.CheckShares(); err != nil {
		return cli.WithHint(err, hint+", or choose the size of buffers with --ring-size")
	}
	return nil
}
