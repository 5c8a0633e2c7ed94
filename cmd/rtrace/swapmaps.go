package main

import (
	"context"
	"errors"
	"io"
	"path"

	"rtrace-bpf/internal/analysis/library"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// swapMapsCommand prints the mapped files, and when each was mapped.
func swapMapsCommand() command {
	return command{
		name: "swap-maps",
		page: cli.Page{
			Summary:  "print the executable mappings of a trace, and when each appeared and disappeared",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Prints a row for each mapping, in order of appearance: when it appeared and disappeared, in seconds since the first record with a time; its process, " +
				"size in bytes, name and bounds. A mapping disappears when another one replaces it or its process executes another program." + swapAbout,
			Examples: []cli.Example{
				{Does: "show which libraries were loaded and unloaded", Command: "rtrace swap-maps trace.swap"},
				{Does: "list those that were unloaded", Command: "rtrace swap-maps --tsv trace.swap | awk -F '\\t' '$2 != \"-\"'"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(swapFlags)
			o.tsvFlag(f.group("What to print"))
			o.in.add(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				maps := library.NewMaps(true)
				var first int64
				read := func(in *input) (err error) {
					first, err = readMaps(in, maps)
					return err
				}
				return o.in.examine(ctx, s, "swap-maps", args, read, func(*input) error {
					return o.printMaps(s.Out, maps, first)
				})
			}
		},
	}
}

// readMaps adds the mappings of a trace to maps and returns the first time.
func readMaps(in trace.Reader, maps *library.Maps) (first int64, err error) {
	var rec trace.Record
	for {
		if err := in.ReadRecord(&rec); errors.Is(err, io.EOF) {
			return first, nil
		} else if err != nil {
			return first, err
		}
		if first == 0 {
			first = rec.Time
		}
		maps.Add(&rec)
	}
}

func (o *swapFlags) printMaps(w io.Writer, maps *library.Maps, first int64) error {
	sheet := newSheet(w, o.tsv, right("from"), right("to"), right("pid"), right("size"), left("name"), right("low"), right("high"), left("path"))
	for _, m := range maps.List() {
		sheet.row(sinceStart(m.From, first), sinceStart(m.To, first), id(m.PID), count(m.Mapping.End-m.Mapping.Start),
			path.Base(m.Mapping.Path), hexAddress(m.Mapping.Start), hexAddress(m.Mapping.End), m.Mapping.Path)
	}
	return sheet.close()
}
