package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/postproc"
)

// postprocFlags select the options of rtrace postproc that a trace is piped through.
type postprocFlags struct {
	options  string // separated by blanks
	on       bool
	flag     *pflag.Flag
	variable string // of the environment that has set the flag; else empty
}

func (p *postprocFlags) declare(f *pflag.FlagSet) {
	f.StringVarP(&p.options, "postproc", "P", "", "pipe the trace through rtrace postproc with `OPTIONS`, one argument with blanks in it, such as '-l -c'; its output is written instead of the trace (.txt)")
	p.flag = f.Lookup("postproc")
}

// check returns an error if -P does not go with other flags.
func (p *postprocFlags) check(c *config) error {
	if p.on = p.flag.Changed; !p.on {
		return nil
	}
	err := p.conflict(c)
	if err != nil && p.variable != "" {
		err = fmt.Errorf("%s: %w", p.variable, err)
	}
	return err
}

func (p *postprocFlags) conflict(c *config) error {
	if c.format.name != "sprtrace" || c.dotnet.on {
		return errors.New("-P goes with --format sprtrace, which rtrace postproc reads, and not with --dotnet")
	}
	if c.output.side != "" {
		return errors.New("-P has no side file, because it writes no trace: leave --side out")
	}
	if err := postproc.CheckPiped(strings.Fields(p.options)); err != nil {
		return fmt.Errorf("-P %q: %w", p.options, err)
	}
	return nil
}
