package main

import (
	"bufio"
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

	bytes  int64 // of the stream
	flawed error // what the stream does not say to its end, or not as it should; nil if it does
	calls  uint64
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
	case r.flawed == nil:
		return nil
	case stopErr != nil:
		return cli.Incompletef("the end of the events of process %d is missing: %v", r.pid, stopErr)
	case errors.Is(r.flawed, trace.ErrTruncated):
		return cli.Incompletef("the events of process %d break off: it has ended, or was killed", r.pid)
	}
	return cli.Incompletef("the events of process %d are not understood to their end: %v", r.pid, r.flawed)
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

// Read reads the stream. That it was closed is an end; what came tells whether that was
// the whole.
func (r *stream) Read(p []byte) (int, error) {
	n, err := r.events.Read(p)
	r.bytes += int64(n)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// copy writes the stream as it comes, or what it means in another format.
func (r *stream) copy() error {
	if r.config.format == wire.Format {
		return r.save()
	}
	e, err := encoder.New(r.config.format, r.out, r.config.encoding())
	if err != nil {
		return err
	}
	in, err := decoder.NewReader(r, decoder.Options{})
	if err == nil {
		err = trace.Copy(&counting{e, &r.calls}, in)
	}
	if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
		r.flawed, err = err, nil
	}
	return errors.Join(err, e.Close())
}

// save writes the stream as it comes, all of it, and reads it on the way, to know
// whether it is whole.
func (r *stream) save() error {
	to := &saving{w: r.out}
	in := bufio.NewReaderSize(io.TeeReader(r, to), saveBuffer)
	scanner, err := decoder.NewScanner(in, decoder.Options{})
	for err == nil {
		_, err = scanner.Next()
	}
	if !errors.Is(err, io.EOF) {
		r.flawed = err
	}
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, to.err)
}

// saveBuffer is how much of a stream is read at once, in bytes.
const saveBuffer = 64 << 10

// saving remembers the first error of writing. It has none for who reads beside it.
type saving struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (s *saving) Write(p []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.w.Write(p)
	}
	if s.err != nil {
		return 0, io.EOF // an end for the reader
	}
	return len(p), nil
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
