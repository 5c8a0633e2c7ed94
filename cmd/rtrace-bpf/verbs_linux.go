package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
)

// verb is one of the things that the program does. It is the first word of the command line.
type verb struct {
	name string
	page func() *cli.Page
	// run carries out the command line after the verb, and prints its own errors.
	run func(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode
}

// verbs returns the verbs in the order of the help. A new verb is one file and one row here.
// Without a verb, the command line is that of record.
func verbs() []verb {
	return []verb{
		{"record", recordPage, recordVerb},
		explainVerb(),
		topVerb(),
		{"plan", planPage, planVerb},
		modulesVerb(),
		toggleVerb(),
		markVerb(),
		{"help", helpPage, helpVerb},
	}
}

// findVerb returns the verb with the given name.
func findVerb(word string) (verb, bool) {
	all := verbs()
	if i := slices.IndexFunc(all, func(v verb) bool { return v.name == word }); i >= 0 {
		return all[i], true
	}
	return verb{}, false
}

// verbNames returns the names of all verbs.
func verbNames() []string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return names
}

// runFunc is what a verb with flags of its own does. args are the arguments that are not flags.
type runFunc func(ctx context.Context, s cli.Streams, args []string, env settings) error

// ownVerb returns a verb whose flags are its own. page is its help without the name and the
// flags. setup declares the flags, and returns the function to run once they are parsed.
func ownVerb(word string, page *cli.Page, setup func(*flags.Groups) runFunc) verb {
	return parsedVerb(word, page, cli.Usage, func(g *flags.Groups) commandFunc {
		do := setup(g)
		return func(ctx context.Context, s cli.Streams, args, command []string, env settings) cli.ExitCode {
			return cli.Report(s.Err, name+" "+word, do(ctx, s, append(args, command...), env))
		}
	})
}

// commandFunc is the same for a verb that can start a command, which is nil for none. It prints its
// own errors.
type commandFunc func(ctx context.Context, s cli.Streams, args, command []string, env settings) cli.ExitCode

// commandVerb is ownVerb for a verb that can start a command. Then its own exit codes are those of
// programs that start commands.
func commandVerb(word string, page *cli.Page, setup func(*flags.Groups) commandFunc) verb {
	return parsedVerb(word, page, ownFailure, setup)
}

// parsedVerb returns a verb. misuse is its exit code for a wrong command line with a command.
func parsedVerb(word string, page *cli.Page, misuse cli.ExitCode, setup func(*flags.Groups) commandFunc) verb {
	var log logFlag
	declare := func(g *flags.Groups) commandFunc {
		do := setup(g)
		general := g.Group("General")
		log.declare(general)
		g.Help(general, "h")
		return do
	}
	full := func() *cli.Page {
		var g flags.Groups
		declare(&g)
		p := *page
		p.Name, p.Flags = name+" "+word, g.Usage()
		return &p
	}
	return verb{word, full, func(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode {
		var g flags.Groups
		do := declare(&g)
		rest, command, err := g.ParseCommand(name+" "+word, args)
		s, flush := log.apply(s)
		defer flush()
		switch {
		case errors.Is(err, pflag.ErrHelp):
			err = full().WriteHelp(s.Out, g.Topic())
		case err != nil:
			err = misused(err)
		default:
			return do(ctx, s, rest, command, env)
		}
		code := cli.Report(s.Err, name+" "+word, err)
		if code == cli.Usage && slices.Contains(args, "--") {
			return misuse
		}
		return code
	}}
}

// misused returns the error of a wrong command line. If a flag is unknown that other verbs
// have, the hint names these.
func misused(err error) error {
	err = &cli.UsageError{Err: err}
	unknown, ok := errors.AsType[*flags.UnknownError](err)
	if !ok || unknown.Meant != "" {
		return err
	}
	var others []string
	for _, v := range verbs() {
		if v.page().Has(unknown.Flag) {
			others = append(others, name+" "+v.name)
		}
	}
	if len(others) == 0 {
		return err
	}
	return cli.WithHint(err, unknown.Flag+" is a flag of "+strings.Join(others, ", "))
}

// plainExit is the meaning of the exit codes of verbs that trace nothing.
var plainExit = []cli.ExitRow{
	{Code: cli.OK, Text: "done"},
	{Code: cli.Failed, Text: "failed"},
	{Code: cli.Usage, Text: "the command line is wrong"},
}

// completed returns the program with what manual pages and completion need.
func completed() *cli.Program {
	p := &cli.Program{Page: overview(), Default: "record", Topics: recordPage().Topics()}
	for _, v := range verbs() {
		if v.name != "help" {
			p.Subcommands = append(p.Subcommands, v.page())
		}
	}
	return p
}
