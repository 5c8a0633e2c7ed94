package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	decoder "rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/dotnet"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// stream is the recording of the events of a runtime.
type stream struct {
	config *config
	status status
	pid    int
	events *dotnet.Session
	out    *outfile.File

	bytes int64 // of the stream
	last  byte
	calls uint64
}

// recordDotnet streams the events of a process of .NET into a file.
func recordDotnet(ctx context.Context, s cli.Streams, c *config, hurry <-chan struct{}) error {
	pids, err := c.selection.Find()
	if err != nil {
		return err
	}
	if len(pids) != 1 {
		return cli.Usagef("--dotnet takes one process, and %d are selected", len(pids))
	}
	r := &stream{config: c, pid: pids[0], status: status{w: s.Err, on: s.ErrTerminal && !c.quiet}}
	client, err := dotnet.Find(r.pid)
	if err != nil {
		return err
	}
	info, err := client.ProcessInfo(ctx)
	if err != nil {
		return fmt.Errorf("process %d: %w", r.pid, err)
	}
	x := &session{config: c, streams: s, pid: r.pid}
	if r.out, err = x.output(); err != nil {
		return err
	}
	config, err := c.dotnet.session()
	if err == nil {
		r.events, err = client.CollectTracing(ctx, config)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("process %d: %w", r.pid, err), r.out.Discard())
	}
	if !c.quiet {
		r.status.print("streaming the events of process %d (%s, .NET %s), writing %s", r.pid, printable.Name(info.CommandLine), printable.Name(info.Version), r.out.Path())
	}
	return r.run(ctx, hurry)
}

// run streams until the recording is to end, and what the runtime has to say
// then.
func (r *stream) run(ctx context.Context, hurry <-chan struct{}) error {
	planned, cancel := context.WithCancel(ctx)
	defer cancel()
	if d := r.config.duration; d > 0 {
		defer time.AfterFunc(d, cancel).Stop()
	}
	err := (&recording{config: r.config}).ready()
	if err != nil {
		cancel()
	}
	var stopErr error
	stopped := make(chan struct{})
	copied := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-planned.Done():
			stopErr = r.stop(hurry, copied)
		case <-copied:
		}
	}()
	err = errors.Join(err, r.copy())
	close(copied)
	// If it was not read to its end, the runtime is not to wait for that.
	closeErr := r.events.Close()
	<-stopped
	err = errors.Join(err, closeErr, r.out.Close())
	r.status.clear()
	if err == nil && !r.config.quiet {
		r.status.print("%s of events%s", size(uint64(r.bytes)), r.counted())
	}
	switch {
	case err != nil:
		return err
	case r.last != wire.TagNull:
		if stopErr != nil {
			return cli.Incompletef("the end of the events of process %d is missing: %v", r.pid, stopErr)
		}
		return cli.Incompletef("the events of process %d break off: it has ended, or was killed", r.pid)
	}
	return nil
}

// stop ends the stream: as planned, or at once when that takes too long for the
// user. Copied is closed when the stream is read to its end.
func (r *stream) stop(hurry <-chan struct{}, copied chan struct{}) error {
	r.status.say("the runtime writes the names of methods; Ctrl-C leaves them out")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-hurry:
			cancel(errHurried)
		case <-ended:
		}
	}()
	err := r.events.Stop(ctx)
	if err != nil {
		// What is not read now never ends.
		return errors.Join(err, r.events.Close())
	}
	select {
	case <-copied:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), r.events.Close())
	}
	return nil
}

// Read reads the stream, and notes how it ends. That it was closed is an end.
func (r *stream) Read(p []byte) (int, error) {
	n, err := r.events.Read(p)
	if n > 0 {
		r.bytes += int64(n)
		r.last = p[n-1]
	}
	if err != nil {
		err = io.EOF // the last byte tells whether it was the end
	}
	return n, err
}

// copy writes the stream as it comes, or what it means in another format.
func (r *stream) copy() error {
	if r.config.format == wire.Format {
		_, err := io.Copy(r.out, struct{ io.Reader }{r})
		return err
	}
	e, err := encoder.New(r.config.format, r.out, r.config.encoding())
	if err != nil {
		return err
	}
	in, err := decoder.NewReader(r, decoder.Options{})
	if err == nil {
		err = trace.Copy(&counting{e, &r.calls}, in)
	}
	if errors.Is(err, trace.ErrTruncated) {
		err = nil // the last byte tells
	}
	return errors.Join(err, e.Close())
}

// counted says what was found in the stream, where that is looked at.
func (r *stream) counted() string {
	if r.config.format == wire.Format {
		return ""
	}
	return fmt.Sprintf(", %d sampled allocations", r.calls)
}

// counting counts calls.
type counting struct {
	trace.Writer
	calls *uint64
}

// WriteRecord implements trace.Writer.
func (c *counting) WriteRecord(r *trace.Record) error {
	if r.Kind == trace.KindCall {
		*c.calls++
	}
	return c.Writer.WriteRecord(r)
}
