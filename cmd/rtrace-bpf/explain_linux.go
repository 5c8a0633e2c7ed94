package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/linux/selection"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/survey"
)

// explainFlags are the flags of rtrace-bpf explain.
type explainFlags struct {
	selection selection.Selection
	json, all bool
	watch     flags.Duration
	count     int
	walk      flags.Duration
}

// explainInterval is the time between two readings of --watch if none is named.
const explainInterval = "5s"

func (f *explainFlags) declare(g *flags.Groups) {
	set := g.Group("Processes")
	set.VarP((*flags.PIDs)(&f.selection.PIDs), "pid", "p", "explain process `PID`; separate several with commas, or repeat the flag")
	set.StringArrayVar(&f.selection.Comms, "comm", nil, "explain all processes whose command name is `NAME` now; may be repeated")
	flags.OfferCommands(set, "comm")
	set = g.Group("Output")
	set.BoolVar(&f.all, "all", false, "print all rows with their largest parts, and the arenas of malloc with their largest holes")
	set.BoolVar(&f.json, "json", false, "print one line of JSON for each process and reading")
	set.Var(&f.watch, "watch", "repeat every `TIME`, such as 10s (5s if TIME is left out; write --watch=TIME), and print what changed since the reading before, until Ctrl-C or the end of the process")
	set.Lookup("watch").NoOptDefVal = explainInterval
	set.VarP(flags.Number(&f.count, 0, 1, flags.Unbounded), "count", "n", "end --watch after `N` readings")
	f.walk = flags.Duration(10 * time.Second)
	set.Var(&f.walk, "max-walk", "read the blocks of malloc for at most `TIME`, 0s for not at all; what is not read by then is a row of its own")
}

// explainPage is the help of rtrace-bpf explain, without its flags.
var explainPage = cli.Page{
	Summary:  "show where the resident memory of a running process is, without probes",
	Synopsis: []string{"-p PID [flags]", "--comm NAME [flags]"},
	Intro: "Shows which part of a process's RSS is live heap, free memory inside malloc, stacks, files, shared memory or the heap of a runtime, and what to do about it. " +
		"It attaches nothing and does not stop the process.",
	About: "Reads /proc/PID/smaps, pagemap and the memory of the process. Each verdict quotes the figure that it rests on; the rows add up to the resident memory that the kernel counts. " +
		"The process is read twice, because it runs on; the last line shows what changed in between.\n\n" +
		"For the GNU C library, the blocks of all arenas are read from outside: live, free between live ones, kept in the caches of threads, and free at the ends. No debugging symbols are needed. " +
		"For jemalloc, tcmalloc and mimalloc, and for the heaps of Go, Java, node, .NET and Python, the mapped and the resident memory is shown. " +
		"\"(likely)\" marks what was recognised by signs that may mislead; --json has the reason.\n\n" +
		"Reading memory needs the rights of a debugger: root, or the user of the process if the system lets users debug their own processes.",
	Common: []cli.ListRow{
		{Name: "pid", Text: "explain this process; separate several with commas"},
		{Name: "all", Text: "all rows with their parts, arenas and holes"},
		{Name: "watch", Text: "repeat every 5s, or --watch=TIME, and show what changed"},
		{Name: "json", Text: "one line of JSON per process and reading"},
	},
	Examples: []cli.Example{
		{Does: "see where the memory of a process is", Command: "sudo rtrace-bpf explain -p 4711"},
		{Does: "see what grows, every minute", Command: "sudo rtrace-bpf explain -p 4711 --watch=1m"},
	},
	Exit: []cli.ExitRow{
		{Code: cli.OK, Text: "done"},
		{Code: cli.Failed, Text: "no process could be read"},
		{Code: cli.Usage, Text: "the command line is wrong"},
		{Code: cli.Incomplete, Text: "done, but some of the processes could not be read"},
	},
}

// explainVerb is rtrace-bpf explain.
func explainVerb() verb {
	return ownVerb("explain", &explainPage, func(g *flags.Groups) runFunc {
		var f explainFlags
		f.declare(g)
		return func(ctx context.Context, s cli.Streams, args []string, _ settings) error {
			switch {
			case len(args) > 0:
				return cli.Usagef("unexpected argument %q: name processes with -p PID", args[0])
			case f.selection.Empty():
				return cli.Usagef("name a process with -p PID or --comm NAME")
			case f.count > 0 && f.watch == 0:
				return cli.Usagef("--count counts the readings of --watch: add --watch, or leave it out")
			}
			return f.explain(ctx, s)
		}
	})
}

// explain prints the documents of all processes.
func (f *explainFlags) explain(ctx context.Context, s cli.Streams) error {
	if err := f.selection.Check(); err != nil {
		return &cli.UsageError{Err: err}
	}
	pids, err := f.selection.Find()
	if err != nil {
		return err
	}
	if f.watch > 0 {
		return f.repeat(ctx, s, pids)
	}
	failed := 0
	for i, pid := range pids {
		d, err := f.twice(ctx, pid)
		if err == nil {
			err = f.print(s, d, i > 0)
			if err != nil {
				return err
			}
			continue
		}
		if len(pids) == 1 {
			return err
		}
		failed++
		cli.Message(s.Err, slog.LevelError, name+" explain", printable.Name(err.Error()))
	}
	switch failed {
	case 0:
		return nil
	case len(pids):
		return cli.ErrReported
	}
	return cli.Incompletef("%d of %d processes could not be read", failed, len(pids))
}

// twice reads a process twice, because it may change while it is read, and returns the second
// document with the drift since the first.
func (f *explainFlags) twice(ctx context.Context, pid int) (*explain.Document, error) {
	first, err := f.read(ctx, pid, false)
	if err != nil {
		return nil, err
	}
	d, err := f.read(ctx, pid, true)
	if err != nil {
		return nil, err
	}
	d.Since(first)
	return d, nil
}

func (f *explainFlags) read(ctx context.Context, pid int, check bool) (*explain.Document, error) {
	d, err := survey.Read(ctx, pid, survey.Options{Walk: max(1, time.Duration(f.walk)), Check: check})
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, cli.WithHint(err, refusedHint(pid))
	case errors.Is(err, proc.ErrNoProcess):
		return nil, fmt.Errorf("process %d: %w", pid, proc.ErrNoProcess)
	case errors.Is(err, proc.ErrNoProgram):
		return nil, withoutMemory(pid)
	}
	return d, err
}

// withoutMemory returns the error about a process that has no memory of its own.
func withoutMemory(pid int) error {
	s, err := proc.ReadStat(pid)
	switch {
	case err == nil && s.KernelThread():
		return fmt.Errorf("process %d (%s) is a kernel thread: it has no memory of its own", pid, printable.Name(s.Name))
	case err == nil && s.State == 'Z':
		return fmt.Errorf("process %d (%s) is a zombie: it has ended, and has no memory of its own", pid, printable.Name(s.Name))
	}
	return fmt.Errorf("process %d has no memory of its own: it has ended", pid)
}

// refusedHint returns what to do if the kernel refuses to let a process be read.
func refusedHint(pid int) string {
	if os.Geteuid() == 0 {
		return "the process has capabilities that this root lacks, or a security module protects it: run this as root of the machine, outside of a container"
	}
	return fmt.Sprintf("run it as root: sudo %s explain -p %d", name, pid)
}

// print prints one document.
func (f *explainFlags) print(s cli.Streams, d *explain.Document, again bool) error {
	if f.json {
		return d.WriteJSON(s.Out)
	}
	if again {
		if _, err := fmt.Fprintln(s.Out); err != nil {
			return err
		}
	}
	v := explain.View{Rows: explainRows, Width: cli.ScreenWidth}
	if f.all {
		v.Rows, v.Parts = 0, true
	}
	return d.WriteText(s.Out, v)
}

// explainRows is how many rows are printed without --all.
const explainRows = 10

// repeat reads the processes again and again, each with the drift since the reading before.
func (f *explainFlags) repeat(ctx context.Context, s cli.Streams, pids []int) error {
	before := map[int]*explain.Document{}
	next := time.NewTicker(time.Duration(f.watch))
	defer next.Stop()
	printed := false
	for n := 1; ; n++ {
		gone := 0
		for _, pid := range pids {
			d, err := f.read(ctx, pid, before[pid] == nil)
			switch {
			case errors.Is(err, proc.ErrNoProcess) && before[pid] != nil:
				gone++
				continue
			case err != nil && before[pid] == nil:
				return err
			case err != nil:
				gone++ // it is ending
				continue
			}
			if b := before[pid]; b != nil {
				d.Since(b)
			}
			before[pid] = d
			if err := f.print(s, d, printed); err != nil {
				return err
			}
			printed = true
		}
		if gone == len(pids) || n == f.count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
	}
}
