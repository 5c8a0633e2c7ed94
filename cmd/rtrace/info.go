package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

func infoCommand() command {
	return command{
		name: "info",
		page: cli.Page{
			Summary:  "show what a trace contains",
			Synopsis: []string{"[--json] [FILE]"},
			About: "Prints the format and the process; how many records of each kind there are; the calls of each function; live blocks at the end and at the peak; " +
				"resident memory and the state of the heap, if the trace has them; what was lost; and how complete the stacks are. If a file has several streams, such " +
				"as those of a process and its child, it prints each. In JSON they are in streams, and all other keys are for the first one.\n\n" +
				"Memory use grows with the number of live blocks and distinct stacks.",
			Lists: []cli.List{countList},
			Examples: []cli.Example{
				{Does: "see whether events were lost", Command: "rtrace info rtrace-raw-4711-0"},
				{Does: "get one number for a script", Command: "rtrace info --json rtrace-raw-4711-0 | jq '.resources[0].live.bytes'"},
			},
			Exit: []cli.ExitRow{
				{Code: cli.OK, Text: "done; lost events are printed and are not a failure"},
				{Code: cli.Failed, Text: "failed"},
				{Code: cli.Usage, Text: "the command line is wrong"},
				{Code: cli.Incomplete, Text: "done, but the input is incomplete: it was cut, its tracer did not finish, or it has records that cannot be read"},
				{Code: cli.BrokenPipe, Text: "the reader of the output went away, as head does"},
			},
		},
		setup: func(f *flags) runFunc {
			var (
				asJSON bool
				in     inputFlags
			)
			f.group("Output").BoolVar(&asJSON, "json", false, "print one JSON object instead of text")
			in.add(f.group("Input"))
			in.windows = true
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
	var streams streams
	err = in.outcome(trace.Copy(&streams, filter.NewJoinMoves(in)))
	if !isIncomplete(err) {
		return err
	}
	reports := streams.reports(in, err == nil)
	report := reports[0]
	if len(reports) > 1 {
		whole := *report
		whole.File.Complete, whole.Streams = err == nil, reports
		report = &whole
	}
	if asJSON {
		if e := writeJSON(s.Out, report); e != nil {
			return e
		}
		return err
	}
	for i, r := range reports {
		if len(reports) > 1 {
			if e := writeStreamTitle(s.Out, i+1, len(reports)); e != nil {
				return e
			}
		}
		if e := r.writeText(s.Out); e != nil {
			return e
		}
	}
	return err
}

// writeStreamTitle writes the line before the figures of a stream.
func writeStreamTitle(w io.Writer, n, of int) error {
	gap := "\n"
	if n == 1 {
		gap = ""
	}
	_, err := fmt.Fprintf(w, "%s%-11s %d of %d\n", gap, "stream:", n, of)
	return err
}

// streams is a trace.Writer with a survey for each stream of a file. Each stream begins with
// a header: a process and its child may write to one file.
type streams struct {
	all   []*survey
	begun bool // the last one has a record
}

// WriteRecord implements trace.Writer.
func (s *streams) WriteRecord(r *trace.Record) error {
	if len(s.all) == 0 || s.begun && r.Kind == trace.KindHeader {
		s.all = append(s.all, newSurvey())
	}
	s.begun = true
	return s.all[len(s.all)-1].WriteRecord(r)
}

// Flush implements trace.Writer.
func (s *streams) Flush() error { return nil }

// Close implements trace.Writer.
func (s *streams) Close() error { return nil }

// reports returns the report of each stream, at least one. whole means that the input has no
// errors.
func (s *streams) reports(in *input, whole bool) (all []*report) {
	if len(s.all) == 0 {
		s.all = append(s.all, newSurvey())
	}
	stats := in.Stats()
	for i, survey := range s.all {
		r := survey.report()
		r.File = fileReport{
			Format: in.Format, Version: stats.Version, Compression: in.Compression, SideFile: in.Side, Skipped: stats.Skipped, Complete: whole,
		}
		if h := survey.heap; h != nil {
			about := in.HeapInfo()
			if about == nil {
				about = survey.about
			}
			r.Heap = newHeapReport(h.Time, &h.HeapInfo, about)
		}
		if r.File.Version == "" || !strings.HasPrefix(r.File.Version, survey.header.Version) { // that of the last stream
			r.File.Version = survey.header.Version
		}
		if len(s.all) > 1 {
			// If another stream follows, only the end of this one matters.
			ends := in.Format == "mtrc" || survey.header.Ends
			r.File.Complete = survey.kinds[trace.KindEnd] > 0 || !ends && (whole || i < len(s.all)-1)
		}
		all = append(all, r)
	}
	return all
}
