package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
)

// commands are the subcommands in the order of the help. A new subcommand is
// one file with a constructor, and one row here.
func commands() []command {
	return []command{}
}

// command is one subcommand.
type command struct {
	name string
	// page is the help without Name and Flags, which are filled in.
	page cli.Page
	// setup declares the flags and returns what to do once they are parsed.
	setup func(f *flags) runFunc
}

// runFunc does the work of a subcommand. args is what was not a flag. Its
// error decides the exit code (see package cli).
type runFunc func(ctx context.Context, s cli.Streams, args []string) error

func (c *command) run(ctx context.Context, s cli.Streams, args []string) error {
	var f flags
	do := c.setup(&f)
	rest, err := f.parse("rtrace "+c.name, args)
	if errors.Is(err, pflag.ErrHelp) {
		return c.helpPage().WriteText(s.Out)
	}
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	return do(ctx, s, rest)
}

func (c *command) helpPage() *cli.Page {
	var f flags
	c.setup(&f)
	page := c.page
	page.Name = "rtrace " + c.name
	page.Flags = f.usage()
	return &page
}

// flags are the flags of one command in titled groups.
type flags struct {
	groups []flagGroup
}

type flagGroup struct {
	title string
	set   *pflag.FlagSet
}

// group starts a group of flags. They are listed in the order of their
// declaration; the back-quoted word of a usage text names the value.
func (f *flags) group(title string) *pflag.FlagSet {
	set := newFlagSet(title)
	f.groups = append(f.groups, flagGroup{title, set})
	return set
}

func newFlagSet(name string) *pflag.FlagSet {
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	set.SortFlags = false
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	return set
}

// parse returns the arguments that are not flags, or pflag.ErrHelp.
func (f *flags) parse(name string, args []string) ([]string, error) {
	all := newFlagSet(name)
	for _, g := range f.groups {
		all.AddFlagSet(g.set)
	}
	if err := all.Parse(args); err != nil {
		return nil, err
	}
	return all.Args(), nil
}

func (f *flags) usage() []cli.FlagGroup {
	general := newFlagSet("General")
	general.BoolP("help", "h", false, "print this page")
	var out []cli.FlagGroup
	for _, g := range append(f.groups[:len(f.groups):len(f.groups)], flagGroup{"General", general}) {
		out = append(out, cli.FlagGroup{Title: g.title, Usage: g.set.FlagUsagesWrapped(cli.Width)})
	}
	return out
}
