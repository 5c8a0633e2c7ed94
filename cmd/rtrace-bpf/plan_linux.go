package main

import (
	"context"
	"slices"

	"rtrace-bpf/internal/cli"
)

// planVerb is the verb that prints what record would probe with the same command line.
func planVerb(ctx context.Context, s cli.Streams, args []string, env settings) cli.ExitCode {
	c := config{limits: limitFlags{dryRun: true}}
	return c.run(ctx, s, args, env, planPage)
}

// planPage is the help of plan. It accepts all flags of record, and lists those that change
// the plan.
func planPage() *cli.Page {
	page := recordPage()
	return &cli.Page{
		Name:     name + " plan",
		Command:  true,
		Summary:  "print what record would probe, where and how, and touch nothing",
		Synopsis: []string{"-p PID [flags]", "[flags] -- COMMAND [ARGUMENT...]", "--wait --comm NAME [flags]"},
		About: "Prints the allocators of each selected process, and for each of their functions the probe's site, what a probe costs there, and where the arguments are. " +
			"The process is not touched. It accepts all flags of record: put plan in place of record to see what a command line would do.\n\n" +
			"A command after -- is started, held before its first instruction, and ended. A process that --wait finds runs on.",
		Flags: slices.DeleteFunc(page.Flags, func(g cli.FlagGroup) bool {
			return !slices.Contains([]string{"What is traced", "Allocators", "Modules", "Stacks", "General"}, g.Title)
		}),
		Common: []cli.ListRow{
			{Name: "pid", Text: "this process; separate several with commas"},
			{Name: "comm", Text: "all processes with this name"},
			{Name: "allocator", Text: "only this allocator"},
			{Name: "enable", Text: "these modules, such as memory:file"},
			{Name: "operators", Text: "which C++ operators: new, all or none"},
			{Name: "args"},
			{Name: "verbose", Text: "also print what is done, and why"},
		},
		Examples: []cli.Example{
			{Does: "see which allocators a process has, and where their probes would go", Command: "sudo rtrace-bpf plan -p 4711"},
			{Does: "see what a probe would cost for each function of two modules", Command: "sudo rtrace-bpf plan -p 4711 -e memory:file"},
		},
		Exit: append(slices.Clone(plainExit), cli.ExitRow{Code: cli.Incomplete, Text: "done, but some of the processes could not be examined"}),
	}
}
