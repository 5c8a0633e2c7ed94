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
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/printable"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// capture is the recording of the events of a runtime alone.
type capture struct {
	*stream
	out   *outfile.File
	calls uint64
}

// oneOfDotnet says why --dotnet does not take the processes that are selected.
func oneOfDotnet(pids []int) error {
	if len(pids) != 1 {
		return cli.Usagef("--dotnet takes one process, and %d are selected", len(pids))
	}
	return nil
}

// recordDotnet streams the events of a process of .NET into a file.
func recordDotnet(ctx context.Context, s cli.Streams, c *config, hurry <-chan struct{}) error {
	pids, err := c.selection.Find()
	if err == nil {
		err = oneOfDotnet(pids)
	}
	if err != nil {
		return err
	}
	r := new(capture)
	if r.stream, err = findStream(ctx, c, pids[0], &status{w: s.Err, on: s.ErrTerminal && !c.quiet}); err != nil {
		return err
	}
	x := &session{config: c, streams: s, pid: r.pid, status: r.status}
	if r.out, err = x.output(ctx); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return errors.Join(err, r.out.Discard())
	}
	if !c.quiet {
		r.status.print("streaming the events of process %d (%s, .NET %s), writing %s", r.pid, printable.Name(r.info.CommandLine), printable.Name(r.info.Version), r.out.Path())
	}
	return r.run(ctx, hurry)
}

// run streams until the recording is to end, and what the runtime has to say
// then.
func (r *capture) run(ctx context.Context, hurry <-chan struct{}) error {
	planned, cancel := context.WithCancel(ctx)
	defer cancel()
	if d := r.config.duration; d > 0 {
		defer time.AfterFunc(d, cancel).Stop()
	}
	err := (&recording{config: r.config}).ready(planned)
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
			if ctx.Err() == nil { // --duration has ended it: the first signal is in a hurry
				hurry = ctx.Done()
			}
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
	if err != nil {
		return err
	}
	return r.verdict(stopErr)
}

// copy writes the stream as it comes, or what it means in another format.
func (r *capture) copy() error {
	if r.config.format == wire.Format {
		return r.save()
	}
	e, err := encoder.New(r.config.format, r.out, r.config.encoding())
	if err != nil {
		return err
	}
	return errors.Join(r.decode(&counting{e, &r.calls}, decoder.Options{}), e.Close())
}

// save writes the stream as it comes, all of it, and reads it on the way, to know
// whether it is whole.
func (r *capture) save() error {
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
func (r *capture) counted() string {
	if r.config.format == wire.Format {
		return ""
	}
	return fmt.Sprintf(", %d sampled allocations", r.calls)
}

// counting counts calls, and has the trace announce the End that a whole stream has.
type counting struct {
	trace.Writer
	calls *uint64
}

// WriteRecord implements trace.Writer.
func (c *counting) WriteRecord(r *trace.Record) error {
	switch r.Kind {
	case trace.KindCall:
		*c.calls++
	case trace.KindHeader:
		r.Header.Ends = true
	}
	return c.Writer.WriteRecord(r)
}
