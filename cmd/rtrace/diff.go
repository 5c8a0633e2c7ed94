package main

import (
	"context"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
)

// diffCommand prints what grew between two traces, or two moments of one.
func diffCommand() command {
	return command{
		name: "diff",
		page: cli.Page{
			Summary:  "print what grew between two traces, or two moments of one",
			Synopsis: []string{"[flags] A B", "[flags] --from POINT [--to POINT] FILE"},
			About: "Adds up the blocks that are live at the end of A and of B, or at two moments of one trace, by call site, and prints the differences: the largest " +
				"growth first, the largest decrease last. With --to, that moment counts instead of the end of each trace. Without --from, a single trace is compared " +
				"with its beginning, when nothing was live.\n\n" +
				"Only blocks that were allocated in a recording are compared; blocks from before it are not known. The difference of two recordings of a running " +
				"process is therefore not how much the process grew between them, but how much more one recording left allocated. To see what grew in a process, record " +
				"once and compare two moments.\n\n" +
				"If one of the two recordings has frees of earlier blocks, it is of a running process. If the two then differ in length by more than a tenth of the " +
				"longer one, rtrace also prints what each left allocated per second, and sorts by the growth of that rate.\n\n" +
				"Groups of the two traces match if their printed texts are the same, ignoring the folders of modules. The traces may thus be of two runs of a program: " +
				"where a function is not known, the printed address is that in its file, and threads are identified by name, the first thread of a process as main. If " +
				"the traces are of two versions of a program, use -r and --by function, which leaves lines out.\n\n" +
				"Memory use grows with the number of live blocks and distinct stacks.",
			Lists:  []cli.List{keyList, pointList, countList},
			Common: commonGroupFlags(),
			Examples: []cli.Example{
				{Does: "show what a change of the program made larger", Command: "rtrace diff before.trace after.trace"},
				{Does: "show which stacks grew between the first and the tenth minute", Command: "rtrace diff --by stack --from 1m --to 10m rtrace-raw-4711-0"},
				{Does: "show what allocates more in all", Command: "rtrace diff --allocated before.trace after.trace"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(diffOptions)
			what := f.group("What to print")
			o.addGroups(what, sites.ByFunction)
			what.BoolVar(&o.allocated, "allocated", false, "compare all blocks allocated up to that moment, freed or not, instead of live blocks")
			what.Var(&o.minSize, "min-size", "leave out blocks smaller than `BYTES` (suffixes K, M, G)")
			o.window.addFrom(what, "compare a single trace with its state at `POINT`")
			what.BoolVar(&o.json, "json", false, "print one JSON object instead of text")
			o.addGroupNames(f.group("Names"))
			o.addInput(f.group("Input"))
			return o.run
		},
	}
}

type diffOptions struct {
	tallyFlags
	allocated bool
}

func (o *diffOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	r := &diffReport{options: o, rows: make(map[string]*diffRow)}
	var err error
	switch two := len(args) == 2; {
	case len(args) > 2:
		return cli.Usagef("two traces at most, not %d", len(args))
	case two && args[0] == args[1]:
		return cli.Usagef("%s is both traces; name one, with --from and --to", args[0])
	case two && o.window.from != "":
		return cli.Usagef("--from is for one trace; two are compared at their end, or at --to")
	case two && o.key == sites.ByProcess:
		return cli.Usagef("--by process: the processes of two traces have nothing in common")
	case !two && o.window.from == "" && o.window.to == "":
		return cli.WithHint(cli.Usagef("a trace must be compared with something"), "name a second trace, or moments with --from and --to")
	case two:
		err = r.two(ctx, s, "diff", args)
	default:
		err = r.read(ctx, s, "diff", args, r.both)
	}
	if !isIncomplete(err) {
		return err
	}
	if e := r.write(s.Out); e != nil {
		return e
	}
	r.hints.print(s.Err)
	return err
}

// two reads both traces for a command.
func (r *diffReport) two(ctx context.Context, s cli.Streams, command string, args []string) error {
	err := r.read(ctx, s, command, args[:1], r.before)
	if !isIncomplete(err) {
		return err
	}
	// Errors of the first one are reported, too.
	e := r.read(ctx, s, command, args[1:], r.after)
	if err == nil || !isIncomplete(e) {
		return e
	}
	if e != nil {
		warner(s.Err, command)(e)
	}
	return err
}

// read sums up a trace and passes the result to add.
func (r *diffReport) read(ctx context.Context, s cli.Streams, command string, args []string, add func(*tally)) error {
	o := r.options
	file, err := oneFile(s, args)
	if err != nil {
		return err
	}
	var t *tally
	read := func(in *input) (err error) {
		t, err = o.tally(ctx, in, tallyOptions{file: file, all: true, relative: true, warn: warner(s.Err, command)})
		return err
	}
	return o.in.examine(ctx, s, command, args, read, func(*input) error {
		add(t)
		r.hints.add(&o.names, t.resolver)
		return nil
	})
}
