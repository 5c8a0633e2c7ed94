package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/topview"
)

// topFlags select what top shows, and how.
type topFlags struct {
	config   config // of the recording; most of its flags do not exist here
	batch    bool
	json     bool
	count    int // tables; 0 for no limit
	rows     int
	interval time.Duration
	by       string
	order    string
	filter   string
	noColour bool
}

// topVerb shows who allocates and what stays live, while it happens.
func topVerb() verb {
	return commandVerb("top", topPage, func(g *flags.Groups) commandFunc {
		t := new(topFlags)
		t.declare(g)
		return func(ctx context.Context, s cli.Streams, args, command []string, env settings) cli.ExitCode {
			t.config.command = command
			status, err := 0, t.check(args)
			if err != nil {
				err = &cli.UsageError{Err: err}
			} else {
				status, err = t.run(ctx, s, env)
			}
			code := cli.Report(s.Err, name+" top", err)
			if command != nil {
				return commandExit(status, err)
			}
			return code
		}
	})
}

// declare declares the flags. Those of the recording are flags of record.
func (t *topFlags) declare(g *flags.Groups) {
	c := &t.config
	c.declare()
	pick := func(f *pflag.FlagSet, names ...string) {
		c.flags.VisitAll(func(x *pflag.Flag) {
			for _, name := range names {
				if x.Name == name {
					f.AddFlag(x)
				}
			}
		})
	}
	pick(g.Group("What is traced"), "pid", "comm", "wait", "cgroup", "uid", "follow-forks", "max-processes", "enable", "allocator", "library", "symbol", "min-size", "operators", "allocations")
	f := g.Group("View")
	f.Var(flags.Word(&t.order, string(topview.OrderLive), topview.Orders()...), "sort", "begin with the rows with most of `FIGURE`: live bytes, growth of live bytes per second, rate of allocated bytes per second, or count of live blocks")
	f.Var(flags.Word(&t.by, string(topview.BySite), topview.Groupings()...), "by", "add up calls with the same `WHAT`: site is the whole stack")
	f.StringVar(&t.filter, "filter", "", "only show rows with `TEXT` in a function, file or library of the stack; upper and lower case are the same")
	f.Var((*flags.Duration)(&t.interval), "interval", "refresh every `TIME`, 100ms or more (default 1s)")
	f.BoolVar(&t.noColour, "no-color", false, "use no colours, as if NO_COLOR were set; nothing depends on them")
	b := g.Group("Batch")
	b.BoolVar(&t.batch, "batch", false, "print a table at each refresh, for logs, instead of the terminal interface; the default if standard output is no terminal")
	b.BoolVar(&t.json, "json", false, "with --batch, print each table as one line of JSON")
	b.VarP(flags.Number(&t.count, 0, 1, flags.Unbounded), "count", "n", "with --batch, end after `N` tables (default: at Ctrl-C or when the processes end)")
	b.Var(flags.Number(&t.rows, topRows, 1, flags.Unbounded), "rows", "with --batch, print at most `N` rows, and the sum of the others")
	r := g.Group("Recording")
	pick(r, "duration", "max-rate", "depth", "unwind", "ring-size", "buffer", "ready-file", "verbose")
	pick(g.Hidden(), "mechanism", "state", "sites", "sideband", "bounded")
}

// topRows is how many rows a table has.
const topRows = 10

// leastInterval is the shortest time between two refreshes.
const leastInterval = 100 * time.Millisecond

// check returns an error if flags do not go together. args are the arguments that belong to
// no flag.
func (t *topFlags) check(args []string) error {
	c := &t.config
	c.format.name, c.general.quiet = encoder.Default, true
	if len(args) > 0 {
		return unexpected(args[0])
	}
	if err := c.target.checkWait(c); err != nil {
		return err
	}
	switch {
	case c.command != nil:
		if err := checkCommand(c); err != nil {
			return err
		}
	case c.target.selection.Empty():
		return errors.New("nothing is selected; name a process with -p PID, all of a kind with --comm, --cgroup or --uid, or a command after --")
	}
	switch {
	case t.interval == 0:
		t.interval = time.Second
	case t.interval < leastInterval:
		return errors.New("--interval: the time is too short; write 100ms or more")
	}
	t.batch = t.batch || t.json
	for _, check := range []func(*config) error{c.buffers.check, c.limits.checkValues, c.allocators.checkValues, c.target.checkValues, c.target.follow.check} {
		if err := check(c); err != nil {
			return err
		}
	}
	_, err := c.options()
	return err
}

// topPage is the help of top.
var topPage = &cli.Page{
	Summary:  "show who allocates and what stays live, while it happens",
	Synopsis: []string{"-p PID [flags]", "--batch -p PID [-n N] [--json] [flags]", "[flags] -- COMMAND [ARGUMENT...]", "--wait --comm NAME [flags]"},
	Intro: "Shows the call sites with the most live memory, its growth and the rates of a running process, once a second. " +
		"The process is not restarted, and no trace is written. Press ? for the keys.",
	About: "Traces every allocation and free of a running process, and shows the call sites with the most live memory, once a second. " +
		"The process is not restarted, and no trace is written: memory grows with the live blocks and the call sites, not with the calls. " +
		"Only blocks count that were allocated since top began.\n\n" +
		"The first lines show the resident memory, what the traced blocks take of it, what tracing costs the process, and everything that makes the figures uncertain. " +
		"A row is a call site: a stack, of which the innermost function of the program and its libraries is shown. " +
		"growth/s is the change of live bytes per second over the last minute; alloc/s and calls/s are of the last refresh.\n\n" +
		"With --batch, or if standard output is no terminal, top prints a table at each refresh. The last one follows when the processes have ended.\n\n" +
		"A command after -- is traced from its start. Its output goes to standard error with --batch; next to the terminal interface it goes to a new file in the current directory, unless standard error is redirected. " +
		"Quitting sends it SIGTERM, and top ends when the command has ended.",
	Common: []cli.ListRow{
		{Name: "pid", Text: "this process; separate several with commas"},
		{Name: "comm", Text: "all processes with this name"},
		{Name: "wait", Text: "with --comm: the next process with this name, from its start"},
		{Name: "sort", Text: "by live, growth, rate or count"},
		{Name: "by", Text: "site, function, file, library, thread or size"},
		{Name: "filter", Text: "only rows with this text"},
		{Name: "batch", Text: "print tables, for logs"},
		{Name: "count", Text: "end after this many tables"},
		{Name: "json", Text: "a line of JSON for each table"},
		{Name: "max-rate", Text: "pause when a process makes more calls a second"},
	},
	Examples: []cli.Example{
		{Does: "watch a process", Command: "sudo rtrace-bpf top -p 4711"},
		{Does: "watch a command from its start", Command: "sudo rtrace-bpf top -- ./server --port 8080"},
		{Does: "print who grew most in a minute", Command: "sudo rtrace-bpf top --batch -n 1 --interval 60s --sort growth -p 4711"},
		{Does: "print the live bytes of each library as JSON, every ten seconds", Command: "sudo rtrace-bpf top --json --by library --interval 10s -p 4711 | jq -c .rows"},
	},
	Exit: []cli.ExitRow{
		{Code: cli.OK, Text: "done: at Ctrl-C or q, after -n tables or --duration, or when the processes have ended"},
		{Code: cli.Failed, Text: "failed, or no process could be traced"},
		{Code: cli.Usage, Text: "the command line is wrong"},
		{Code: cli.Incomplete, Text: "done, but something is missing: events, events during a pause for --max-rate, or processes that could not be traced"},
	},
}
