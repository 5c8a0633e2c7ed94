package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/tracer/plan"
)

// limitFlags select when a recording begins, pauses and ends.
type limitFlags struct {
	duration    time.Duration // 0 for no limit
	maxRate     flags.Count   // calls a second; 0 for no limit
	budget      budgetFlag    // 0 for none
	maxSize     flags.Size    // of a trace; 0 for no limit
	strict      bool
	startPaused bool
	dryRun      bool // print the plan only
	readyFile   string
}

// leastMaxSize is the smallest limit on the size of a trace.
const leastMaxSize flags.Size = 2 << 20

func (l *limitFlags) declare(f *pflag.FlagSet) {
	f.Var((*flags.Duration)(&l.duration), "duration", "end after `TIME`, such as 10s or 5m, counted from when the probes are attached and the output is open (default: at Ctrl-C or when the processes end)")
	f.Var(&l.maxRate, "max-rate", "record at most `N` calls a second of each process, on average (suffixes k, M): at a higher rate, recording pauses and the probes are removed for a second or longer; the trace contains the times of pauses")
	f.Var(&l.budget, "budget", "add about `PERCENT` to the CPU time of each process at most, on average over 10 seconds, as 1%: it is recorded in short windows, with no probe in it between them; the first one opens at once, whatever it costs; what comes out are estimates with their errors, and no live blocks")
	f.Var(&l.maxSize, "max-size", "end the recording of a process before its trace and the files that belong to it exceed `BYTES` (suffixes K, M, G); for mtrc in a file, the limit is for the data that is kept until the trace is written")
	f.BoolVar(&l.strict, "strict", false, "end at the first lost event, with exit status 1")
	f.BoolVar(&l.startPaused, "start-paused", false, "start with tracing switched off")
	f.StringVar(&l.readyFile, "ready-file", "", "create the file `PATH` when the probes of all processes are attached")
}

// check returns an error if limits do not go together.
func (l *limitFlags) check(c *config) error {
	switch {
	case l.startPaused && c.dotnet.alone():
		return errors.New("--start-paused switches tracing of native calls, and --dotnet without --native has none: leave it out")
	case l.strict && l.maxRate > 0:
		return errors.New("--max-rate loses events on purpose, and --strict forbids that: name one of them")
	}
	return l.checkBudget(c)
}

// checkValues returns an error if a limit has a value that it cannot have.
func (l *limitFlags) checkValues(*config) error {
	if size, least, reserve := l.maxSize, leastMaxSize, flags.Size(output.Reserve); size > 0 && size < least {
		return fmt.Errorf("--max-size %s: too small; write %s or more, because %s of a trace can wait in memory", size.Text(), least.Text(), reserve.Text())
	}
	if info, err := os.Lstat(l.readyFile); l.readyFile != "" && err == nil && info.Mode().IsRegular() {
		return fmt.Errorf("--ready-file %s: the file exists; remove it first", cli.Word(l.readyFile))
	}
	return nil
}

// set sets the options of limits.
func (l *limitFlags) set(o *plan.Options) error {
	o.MaxRate, o.Budget = uint64(l.maxRate), float64(l.budget)
	o.NoLive = o.NoLive || o.Budget > 0
	return nil
}
