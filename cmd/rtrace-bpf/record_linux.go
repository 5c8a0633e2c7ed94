package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// session is one recording: a tracer, what it is written to, and what is said
// about it.
type session struct {
	config  *config
	streams cli.Streams
	tracer  *tracer.Tracer
	out     *outfile.File
	encoder trace.Writer
	side    *sidefile.Writer
	names   *names
	status  status
}

// record does what the command line asks for.
func record(ctx context.Context, s cli.Streams, c *config) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	x := &session{config: c, streams: s, names: newNames(c.pid), status: status{w: s.Err, on: s.ErrTerminal && !c.quiet}}
	options.Tick = x.tick
	options.Warn = x.status.print
	if c.verbose > 0 {
		options.Log = x.status.print
	}
	plan, err := tracer.NewPlan(options)
	if err != nil {
		return explain(err, c)
	}
	if c.dryRun {
		return errors.Join(plan.WriteText(s.Out), plan.Close())
	}
	if c.verbose > 1 {
		err = plan.WriteText(s.Err)
	}
	if err == nil {
		err = x.open()
	}
	if err != nil {
		return errors.Join(err, plan.Close())
	}
	if x.tracer, err = tracer.Open(plan); err != nil {
		return errors.Join(explain(err, c), x.discard())
	}
	return x.run(ctx)
}

// open makes the output before anything is attached, so that a wrong path
// costs the process nothing.
func (x *session) open() error {
	c := x.config
	var err error
	if x.out, err = output(c, x.streams); err != nil {
		return err
	}
	if x.encoder, err = encoder.New(c.format, x.out, c.encoding()); err != nil {
		return errors.Join(err, x.out.Discard())
	}
	if path := x.sidePath(); path != "" {
		if x.side, err = sidefile.NewWriter(path, encoder.Positions(c.format)); err != nil {
			return errors.Join(err, x.out.Discard())
		}
	}
	return nil
}

// discard gives the files up: nothing was recorded.
func (x *session) discard() error {
	err := x.out.Discard()
	if x.side != nil {
		err = errors.Join(err, x.side.Discard())
	}
	return err
}

// sidePath names the file for what the format cannot hold, empty for none.
func (x *session) sidePath() string {
	switch {
	case x.config.side != "":
		return x.config.side
	case x.config.format == "jsonl" || !x.out.Regular():
		return ""
	}
	return x.out.Path() + ".side"
}

// output opens what -o and --format say (decision 2).
func output(c *config, s cli.Streams) (*outfile.File, error) {
	if c.toStdout() {
		f, ok := s.Out.(*os.File)
		if !ok {
			return nil, errors.New("standard output is no file")
		}
		return outfile.Wrap(f, "standard output"), nil
	}
	dir := c.output
	if dir == "" {
		dir = "."
	}
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return outfile.CreateNumbered(dir, fmt.Sprintf("rtrace-raw-%d", c.pid), encoder.Suffix(c.format))
	}
	if err != nil && strings.HasSuffix(c.output, string(filepath.Separator)) {
		return nil, fmt.Errorf("open output directory: %w", err)
	}
	f, err := outfile.Create(c.output)
	if errors.Is(err, os.ErrExist) {
		return nil, cli.WithHint(err, "a trace never overwrites a file; name another or a directory")
	}
	return f, err
}

// run copies the trace to its output until its end.
func (x *session) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, x.tracer.Stop)()
	if d := x.config.duration; d > 0 {
		defer time.AfterFunc(d, x.tracer.Stop).Stop()
	}
	err := x.ready()
	x.status.begin()
	if err == nil {
		err = x.copy()
	}
	x.status.clear()
	// The probes are off from here on; the files come first, then the links.
	err = errors.Join(err, x.finish(err))
	stats := x.tracer.Stats()
	if !x.config.quiet {
		x.summary(&stats)
	}
	if x.tracer.Plan().Mechanism() == tracer.MechanismPerf {
		x.status.say("removing the probes, which takes seconds on this kernel")
	}
	err = errors.Join(err, x.tracer.Close())
	x.status.clear()
	if err == nil && stats.Losses() > 0 {
		return cli.Incompletef("%d events were lost (%s)", stats.LostEvents(), lossList(&stats))
	}
	if err == nil && stats.Unprobed {
		return cli.Incompletef("the process became a program with another C library or none, which is not traced")
	}
	return err
}

// ready tells whoever waits that the probes are in.
func (x *session) ready() error {
	plan := x.tracer.Plan()
	if !x.config.quiet {
		fmt.Fprintf(x.streams.Err, "%s: tracing process %d (%s), writing %s\n", name, x.config.pid, plan.ProcessName(), x.out.Path())
	}
	if x.config.readyFile == "" {
		return nil
	}
	if err := os.WriteFile(x.config.readyFile, nil, 0o644); err != nil {
		return fmt.Errorf("create ready file: %w", err)
	}
	return nil
}

// errStrict ends a trace that has lost events under --strict.
var errStrict = errors.New("events were lost, and --strict ends the trace then")

func (x *session) copy() error {
	var rec trace.Record
	for {
		err := x.tracer.ReadRecord(&rec)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := x.write(&rec); err != nil {
			x.tracer.Stop()
			return err
		}
		if rec.Kind == trace.KindLost && x.config.strict {
			x.tracer.Stop()
			return fmt.Errorf("%d × %s: %w", rec.Lost.Count, rec.Lost.Reason, errStrict)
		}
	}
}

func (x *session) write(rec *trace.Record) error {
	if err := x.encoder.WriteRecord(rec); err != nil {
		return err
	}
	if x.side != nil {
		if err := x.side.WriteRecord(rec); err != nil {
			return err
		}
	}
	if rec.Kind != trace.KindCall {
		x.names.observe(rec)
		if rec.Kind == trace.KindHeader && x.side != nil && x.config.format == "sprtrace" {
			return x.attachSide(rec)
		}
	}
	return nil
}

// attachSide names the side file inside the trace.
func (x *session) attachSide(head *trace.Record) error {
	return x.encoder.WriteRecord(&trace.Record{
		Kind: trace.KindAttachment, Time: head.Time, PID: head.PID,
		Attachment: trace.Attachment{Name: "side", Path: filepath.Base(x.sidePath())},
	})
}

// finish completes the files. After an error what can still be written is; the
// first error is the one that counts.
func (x *session) finish(failed error) error {
	var all []error
	if err := x.encoder.Close(); failed == nil {
		all = append(all, err)
	}
	if x.side != nil {
		all = append(all, x.side.Close())
	}
	return errors.Join(append(all, x.out.Close())...)
}

// tick is called about once a second while recording.
func (x *session) tick() {
	// An error shows again, and is handled, at the next write.
	_ = x.encoder.Flush()
	stats := x.tracer.Stats()
	x.status.show(&stats)
}

// explain adds what the user can do about an error of the tracer.
func explain(err error, c *config) error {
	switch {
	case errors.Is(err, tracer.ErrNotPrivileged):
		return cli.WithHint(err, "run it as root: sudo "+name+fmt.Sprintf(" -p %d", c.pid))
	case errors.Is(err, tracer.Err32Bit):
		return cli.WithHint(err, "only 64-bit programs can be traced")
	case errors.Is(err, tracer.ErrNoAllocator):
		return cli.WithHint(err, "it must map a C library that exports malloc and free")
	}
	return err
}
