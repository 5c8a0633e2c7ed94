package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/replay"
	"rtrace-bpf/trace"
)

// replayCommand makes the calls of a trace again, with other mallocs.
func replayCommand() command {
	return command{
		name: "replay",
		page: cli.Page{
			Summary:  "make the calls of a trace again with other mallocs, and compare time and memory",
			Synopsis: []string{"[flags] [FILE]"},
			About: "Compiles a small C program with cc (or the compiler in the environment variable CC). The program makes the trace's calls of malloc and related " +
				"functions again, thread by thread, with each malloc library in turn. Prints time and memory of each, compared with the first row. Linux only.\n\n" +
				"Only the calls are replayed, not the program's work between them; docs/replay.md explains what that means for the figures. Environment variables that " +
				"configure a malloc, such as MALLOC_CONF and GLIBC_TUNABLES, take effect. It uses 8 bytes of memory for each call, both here and in the replay, in " +
				"addition to the allocated blocks.",
			Lists: []cli.List{{Title: "Columns", Rows: []cli.ListRow{
				{Name: "time", Text: "from the first call to the last; like all columns, the median of the runs. spread: how far apart the middle half of the runs is, in per cent of the time"},
				{Name: "cpu", Text: "user and system time of all threads"},
				{Name: "peak", Text: "maximum growth of the process's memory (RSS) since before the first call"},
				{Name: "peak/live", Text: "peak divided by the live bytes of the trace at its peak: 1 would be without any waste"},
				{Name: "faults", Text: "pages that the kernel had to map (minor faults)"},
			}}},
			Examples: []cli.Example{
				{Does: "would another malloc do better? (compare all that are installed)", Command: "rtrace replay rtrace-raw-4711-0"},
				{Does: "compare two, with 11 runs each", Command: "rtrace replay --malloc glibc --malloc jemalloc --runs 11 rtrace-raw-4711-0"},
				{Does: "try a library of your own, in the exact order of the trace", Command: "rtrace replay --malloc glibc --malloc ./libmine.so --order trace rtrace-raw-4711-0"},
				{Does: "keep the C program, for a debugger or perf", Command: "rtrace replay --keep replay.d rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			o := new(replayOptions)
			what := f.group("What to compare")
			what.StringArrayVar(&o.mallocs, "malloc", nil, "a malloc: `NAME` is "+strings.Join(replay.MallocNames(), ", ")+" or the path of a library; may be repeated (default: all of these that are installed)")
			groups.Offer(what, "malloc", replay.MallocNames()...)
			what.Var(groups.Number(&o.runs, 5, 1, maxRuns), "runs", "replay `N` times with each, in turn")
			how := f.group("How to replay")
			how.Var(groups.Word(&o.order, "dependencies", "dependencies", "trace"), "order", "`ORDER` of the calls of different threads: dependencies (calls for the same block keep their order) or trace (the order of the trace; the time then means little)")
			how.Var(groups.Word(&o.touch, string(replay.TouchFirst), string(replay.TouchNone), string(replay.TouchFirst), string(replay.TouchAll)), "touch", "write to blocks, as the program may have done: `WHAT` is none, first (one byte of each page) or all (bytes)")
			how.BoolVar(&o.force, "force", false, "replay even if the blocks do not fit into the available memory")
			out := f.group("Output")
			out.BoolVar(&o.json, "json", false, "print one JSON object with all runs instead of a table")
			out.StringVar(&o.keep, "keep", "", "keep the C source, the program and its input in the folder `DIR`")
			o.in.add(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return o.run(ctx, s, args)
			}
		},
	}
}

type replayOptions struct {
	mallocs            []string
	runs               int
	order, touch, keep string
	force, json        bool
	in                 inputFlags
}

// more runs make no sense
const maxRuns = 1000

func (o *replayOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	order, mallocs, err := o.check()
	if err != nil {
		return err
	}
	if err := o.checkKeep(args); err != nil {
		return err
	}
	program, name, err := o.read(ctx, s, args, order)
	if !isIncomplete(err) {
		return err
	}
	incomplete := err
	if err := o.fits(program); err != nil {
		return err
	}
	dir, remove, err := o.folder()
	if err != nil {
		return err
	}
	defer remove()
	runner, err := replay.Prepare(ctx, dir, program)
	if err != nil {
		return err
	}
	stats := program.Stats
	program = nil
	debug.FreeOSMemory() // useful for the replay
	rows, err := runner.Compare(ctx, mallocs, replay.Touch(o.touch), o.runs, o.progress(s))
	if errors.Is(err, fs.ErrPermission) {
		err = cli.WithHint(err, "if programs cannot run from there, name another folder with --keep or in TMPDIR")
	}
	if err != nil {
		return err
	}
	report := newReplayReport(name, stats, o, rows)
	if o.json {
		err = report.writeJSON(s.Out)
	} else {
		err = report.writeText(s.Out)
	}
	return errors.Join(err, incomplete)
}

// check checks the flags before anything else is done.
func (o *replayOptions) check() (order replay.Order, mallocs []replay.Malloc, err error) {
	if o.order == "trace" {
		order = replay.OrderTrace
	}
	if len(o.mallocs) == 0 {
		return order, replay.Installed(), nil
	}
	for _, name := range o.mallocs {
		m, err := replay.FindMalloc(name)
		if err != nil {
			return 0, nil, err
		}
		mallocs = append(mallocs, m)
	}
	return order, mallocs, nil
}

// checkKeep returns an error if the kept files would replace the trace.
func (o *replayOptions) checkKeep(args []string) error {
	if o.keep == "" || len(args) != 1 {
		return nil
	}
	for _, name := range replay.Files() {
		if path := filepath.Join(o.keep, name); sameFile(path, args[0]) {
			return cli.Usagef("--keep %s would replace the trace %s", o.keep, path)
		}
	}
	return nil
}

// read makes a program from the trace that args name.
func (o *replayOptions) read(ctx context.Context, s cli.Streams, args []string, order replay.Order) (p *replay.Program, name string, err error) {
	in, err := o.in.open(ctx, s, "replay", args)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	b := replay.NewBuilder(order)
	err = in.outcome(trace.Copy(b, in))
	if !isIncomplete(err) {
		return nil, "", err
	}
	p, e := b.Program()
	if e != nil {
		return nil, "", fmt.Errorf("%s: %w", in.name, e)
	}
	return p, in.name, err
}

// fits checks that there is memory for the replay.
func (o *replayOptions) fits(p *replay.Program) error {
	if o.force {
		return nil
	}
	available, err := replay.AvailableMemory()
	if err != nil {
		return err
	}
	need := p.Stats.ProgramSize
	if replay.Touch(o.touch) != replay.TouchNone {
		need += p.Stats.PeakBytes
	}
	if need > available || need < p.Stats.ProgramSize {
		return cli.WithHint(fmt.Errorf("the replay needs at least %s of memory, and %s are available", bytesText(need), bytesText(available)),
			"--force replays anyway")
	}
	return nil
}

// folder returns the folder for the replay, and how to clean it up.
func (o *replayOptions) folder() (dir string, remove func(), err error) {
	if o.keep != "" {
		if err := os.MkdirAll(o.keep, 0o755); err != nil {
			return "", nil, cli.FileError("creating", o.keep, err)
		}
		return o.keep, func() {}, nil
	}
	if dir, err = os.MkdirTemp("", "rtrace-replay-"); err != nil {
		return "", nil, fmt.Errorf("creating a folder for the replay: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

// progress prints the number of finished runs on a terminal.
func (o *replayOptions) progress(s cli.Streams) func(done, of int) {
	return func(done, of int) {
		if s.ErrTerminal {
			fmt.Fprintf(s.Err, "\r\033[Krun %d of %d\r", done+1, of)
		}
	}
}
