package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
)

// commands returns the subcommands in the order of the help. A new subcommand is one file
// with a constructor, and one row here.
func commands() []command {
	return []command{
		infoCommand(),
		reportCommand(),
		leaksCommand(),
		topCommand(),
		diffCommand(),
		timelineCommand(),
		heapmapCommand(),
		calltreeCommand(),
		graphsCommand(),
		postprocCommand(),
		resolveCommand(),
		convertCommand(),
		stacksCommand(),
		dumpCommand(),
		undumpCommand(),
		renameCommand(),
		pagemapCommand(),
		allocmapCommand(),
		fromFunctionCommand(),
		functionAddressCommand(),
		allocSizesCommand(),
		statsCommand(),
		sortCommand(),
		mprofCommand(),
		mptraceCommand(),
		replayCommand(),
		swapHeapCommand(),
		swapLibrariesCommand(),
		swapPersistentCommand(),
		swapMapsCommand(),
		swapCallsCommand(),
	}
}

// command is one subcommand.
type command struct {
	name string
	// page is the help without Name and Flags, which helpPage fills in.
	page cli.Page
	// setup declares the flags and returns the function to run once they are parsed.
	setup func(f *flags) runFunc
}

// runFunc does the work of a subcommand. args are the arguments that are not flags. Its
// error determines the exit code (see package cli).
type runFunc func(ctx context.Context, s cli.Streams, args []string) error

func (c *command) run(ctx context.Context, s cli.Streams, args []string) error {
	var f flags
	do := c.setup(&f)
	f.finish()
	rest, err := f.Parse("rtrace "+c.name, args)
	if errors.Is(err, pflag.ErrHelp) {
		return c.helpPage().WriteHelp(s.Out, f.Topic())
	}
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	err = do(ctx, s, withoutSides(rest))
	if refused, ok := errors.AsType[explained](err); ok {
		return refused.explain(c.name, args)
	}
	return err
}

func (c *command) helpPage() *cli.Page {
	var f flags
	c.setup(&f)
	f.finish()
	page := c.page
	page.Name = "rtrace " + c.name
	page.Flags = f.Usage()
	return &page
}

// flags are the flags of one command in titled groups.
type flags struct {
	groups.Groups
}

// group starts a group of flags. They are listed in the order of declaration. The
// back-quoted word of a usage text names the value.
func (f *flags) group(title string) *pflag.FlagSet { return f.Group(title) }

// finish adds the flags that every command has. If a command has another -h, for an original
// program, help has no short name.
func (f *flags) finish() {
	short := "h"
	if f.HasShort(short) {
		short = ""
	}
	f.Help(f.group("General"), short)
}
