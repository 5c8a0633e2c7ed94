package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/cost"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/topview"
	"rtrace-bpf/tracer/host"
)

// reporter prints what happens during a recording.
type reporter struct {
	config  *config
	line    *status.Line
	columns int // of standard error
	pids    []int
	created bool       // the ready file
	verb    string     // of the command line; empty for none
	held    func(bool) // is called when waiting for a reader of the trace begins and ends; nil for nothing
}

var _ recording.Reporter = (*reporter)(nil)

// leastColumns is the least number of columns that lines are made for.
const leastColumns = 40

// newReporter returns a reporter to standard error, which shows progress if terminal is set.
func newReporter(c *config, s cli.Streams, terminal bool) *reporter {
	r := &reporter{config: c, line: c.newLine(s, terminal), columns: topview.TableWidth}
	if f, ok := s.Err.(*os.File); ok && s.ErrTerminal {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			r.columns = max(int(size.Col), leastColumns)
		}
	}
	return r
}

// record records, and returns what went wrong or is missing.
func (r *reporter) record(ctx context.Context, o recording.Options) error {
	r.pids = o.PIDs
	if err := r.follow(&o); err != nil {
		return err
	}
	x := recording.New(o)
	c := newControls(r)
	err := x.Run(ctx, c.requests)
	c.close()
	return r.explain(errors.Join(err, r.outcome(x.Result())))
}

// follow sets the options for following the children of processes, if they are followed.
// After an error, a held process is given up.
func (r *reporter) follow(o *recording.Options) error {
	f := &r.config.target.follow
	if !f.on {
		return nil
	}
	if err := f.share(&o.Tracer, len(o.PIDs)); err != nil {
		if o.Held != nil {
			err = errors.Join(err, o.Held.GiveUp())
		}
		return err
	}
	wake := make(chan os.Signal, 1)
	signal.Notify(wake, unix.SIGCHLD)
	o.Follow = &recording.Follow{Most: f.most, Wake: wake}
	return nil
}

// dryRun prints what would be probed.
func (r *reporter) dryRun(o recording.Options, s cli.Streams) error {
	r.pids = o.PIDs
	x := recording.New(o)
	if err := x.DryRun(s.Out); err != nil {
		return r.explain(err)
	}
	return r.outcome(x.Result())
}

// Ready creates the ready file, once. If that is a FIFO, ctx ends the wait for its reader.
func (r *reporter) Ready(ctx context.Context) error {
	path := r.config.limits.readyFile
	if path == "" || r.created {
		return nil
	}
	r.created = true
	f, err := outfile.Create(ctx, path, nil)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return cli.FileError("create ready file", path, err)
	}
	return nil
}

// waiting prints that the trace has no reader yet, when the wait begins.
func (r *reporter) waiting(on bool) {
	if r.held != nil {
		r.held(on)
	}
	if on {
		r.line.Note("waiting for a reader of %s", r.config.output.path)
	}
}

// Off prints how to switch tracing on.
func (r *reporter) Off() {
	r.line.Note("tracing is off: kill -USR1 %d or rtrace-bpf toggle %d switches it on", os.Getpid(), r.pids[0])
}

// Began prints that a process is traced. For a child, the summary is enough.
func (r *reporter) Began(p *recording.Process) {
	if p.Child && r.config.general.verbose == 0 {
		return
	}
	r.line.Note("tracing process %d (%s), writing %s", p.PID, printable.Name(p.Name), p.Path)
}

// Refused prints that a process is not traced.
func (r *reporter) Refused(err error) { r.line.Print("not traced: %v", err) }

// TooMany prints that a process runs untraced.
func (r *reporter) TooMany(pid, traced int) {
	r.line.Print("process %d and the processes that it starts run untraced: %d processes are traced already, see --max-processes", pid, traced)
}

// Failed prints why the recording of a process has failed.
func (r *reporter) Failed(pid int, err error) { r.line.Print("process %d: %v", pid, err) }

// Full prints that a trace is as large as --max-size allows.
func (r *reporter) Full(pid int) {
	r.line.Note("process %d: the trace is as large as --max-size allows, and ends", pid)
}

// Ended prints the summary of a trace.
func (r *reporter) Ended(s *recording.Summary) {
	switch {
	case r.config.general.quiet:
	case s.Child && s.Suspects == 0:
		r.line.Print("%s", childSummary(s))
	case s.Child:
		_ = r.line.Write(func(w io.Writer) error { // writing to memory cannot fail
			fmt.Fprintf(w, "%s: %s\n", name, childSummary(s))
			r.verdictSummary(w, s)
			return nil
		})
	default:
		_ = r.line.Write(func(w io.Writer) error { // writing to memory cannot fail
			r.summary(w, s)
			return nil
		})
	}
}

// mostlyMeasured is the share of processor time in tracing above which costs that are not
// measured matter, such as the program's cold caches.
const mostlyMeasured = 0.5

// muchSlower is the slow-down above which a way without probes is named.
const muchSlower = 2

// Expensive prints a warning about the cost of tracing, with flags that help.
func (r *reporter) Expensive(pid int, i *cost.Interval, costs host.Costs) {
	if r.config.limits.budget > 0 {
		return // windows are short, and the summary has their cost
	}
	r.line.Note("process %d %s", pid, r.costText(pid, i, costs))
}

// costText returns what tracing costs a process, with flags that help.
func (r *reporter) costText(pid int, i *cost.Interval, costs host.Costs) string {
	text := fmt.Sprintf("makes %s calls/s", status.Count(i.Rate))
	if i.Share >= cost.HighShare {
		about := "about"
		if i.Share >= mostlyMeasured {
			about = "at least"
		}
		text += fmt.Sprintf("; %s %.0f %% of its CPU time goes into tracing, so it runs %s %.1f times slower (a probe costs %v on this machine, a return %v more)",
			about, 100*i.Share, about, i.Factor(), costs.Entry.Round(10*time.Nanosecond), costs.Return.Round(10*time.Nanosecond))
	}
	var help []string
	if i.Lost >= cost.HighLoss {
		text += fmt.Sprintf("; %.0f %% of the calls are lost", max(1, 100*i.Lost))
		help = append(help, "a larger --ring-size")
	}
	if r.config.limits.maxRate == 0 {
		help = append(help, "--max-rate, which records in turns")
	}
	if r.config.allocators.minSize == 0 && i.Lost >= cost.HighLoss {
		help = append(help, "--min-size, which leaves small blocks out")
	}
	if i.Factor() > muchSlower {
		help = append(help,
			fmt.Sprintf("rtrace-bpf record --budget 1%% -p %d, which estimates from short windows", pid),
			fmt.Sprintf("rtrace-bpf top -e growth -p %d, which shows what makes RSS grow without probes", pid))
	}
	if len(help) > 0 {
		text += "; what helps: " + strings.Join(help, ", or ")
	}
	return text
}
