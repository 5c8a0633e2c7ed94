package main

import (
	"context"
	"errors"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

func infoCommand() command {
	return command{
		name: "info",
		page: cli.Page{
			Summary:  "show what a trace holds",
			Synopsis: []string{"[--json] [FILE]"},
			About: "Prints the format, the process, how many records of each kind there are, the calls of each function, what is allocated at the end and at the peak, " +
				"what was lost, and how good the stacks are. It takes memory for the blocks that are live at a time and for each distinct stack.",
			Lists: []cli.List{countList},
			Examples: []cli.Example{
				{Does: "see whether events were lost", Command: "rtrace info rtrace-raw-4711-0"},
				{Does: "get one number for a script", Command: "rtrace info --json rtrace-raw-4711-0 | jq '.resources[0].live.bytes'"},
			},
			Exit: []cli.ExitRow{
				{Code: cli.OK, Text: "done; events that were lost while recording are printed, not a failure"},
				{Code: cli.Failed, Text: "failed"},
				{Code: cli.Usage, Text: "the command line is wrong"},
				{Code: cli.Incomplete, Text: "done, but the input was cut or had packets that could not be read"},
			},
		},
		setup: func(f *flags) runFunc {
			var (
				asJSON bool
				in     inputFlags
			)
			f.group("Output").BoolVar(&asJSON, "json", false, "print one JSON object instead of text")
			in.add(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return info(ctx, s, args, &in, asJSON)
			}
		},
	}
}

func info(ctx context.Context, s cli.Streams, args []string, flags *inputFlags, asJSON bool) (err error) {
	in, err := flags.open(ctx, s, "info", args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	survey := newSurvey()
	err = in.outcome(trace.Copy(survey, filter.NewJoinMoves(in)))
	if !isIncomplete(err) {
		return err
	}
	report := survey.report()
	stats := in.Stats()
	report.File = fileReport{
		Format: in.Format, Version: stats.Version, Compression: in.Compression, SideFile: in.Side, Skipped: stats.Skipped,
		Complete: err == nil,
	}
	if report.File.Version == "" {
		report.File.Version = survey.header.Version
	}
	if asJSON {
		if e := writeJSON(s.Out, report); e != nil {
			return e
		}
	} else if e := report.writeText(s.Out); e != nil {
		return e
	}
	return err
}
