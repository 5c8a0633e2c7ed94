package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	decoder "rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/trace"
)

// stream is what the runtime of a process tells of itself.
type stream struct {
	config *config
	status *status
	pid    int
	client *dotnet.Client
	info   *dotnet.Info
	events *dotnet.Session

	bytes   int64       // of the stream
	ending  atomic.Bool // the recording is over: what comes is the end of the stream
	late    int64       // bytes that came since
	tooMuch bool        // more came than is read
	flawed  error       // what the stream does not say to its end, or not as it should; nil if it does
}

// findStream asks the runtime of a process what it is.
func findStream(ctx context.Context, c *config, pid int, s *status) (*stream, error) {
	client, err := dotnet.Find(pid)
	if err != nil {
		return nil, err
	}
	info, err := client.ProcessInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &stream{config: c, status: s, pid: pid, client: client, info: info}, nil
}

// begin makes the runtime send its events. They must be read from then on.
func (r *stream) begin(ctx context.Context) error {
	config, err := r.config.dotnet.session()
	if err == nil {
		r.events, err = r.client.CollectTracing(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", r.pid, err)
	}
	return nil
}

// lateEnd is how long the end of a stream is waited for when the runtime cannot be
// told to end it: that of a process which has ended comes by itself.
const lateEnd = 2 * time.Second

// longEnd is how long it is waited for when the runtime has said that it is written.
const longEnd = 10 * time.Minute

// mostLate is how many bytes of a stream are read after the end of the recording: what
// the runtime has buffered, at most 256 MiB, and the names of methods. A process whose
// events have no end would fill the disk.
var mostLate int64 = 512 << 20

// stop ends the stream: as planned, or at once when that takes too long for the
// user. Copied is closed when the stream is read to its end.
func (r *stream) stop(hurry, copied <-chan struct{}) error {
	r.ending.Store(true)
	r.status.say("the runtime writes the names of methods; Ctrl-C leaves them out")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-hurry:
			cancel(errHurried)
		case <-copied: // the answer does not matter any more
			cancel(nil)
		case <-ended:
		}
	}()
	err := r.events.Stop(ctx)
	patience := longEnd
	if err != nil {
		patience = lateEnd
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-copied:
		return nil
	case <-late.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	// What is not read now never ends.
	return errors.Join(err, r.events.Close())
}

// Read reads the stream. That it was closed is an end; what came tells whether that was
// the whole.
func (r *stream) Read(p []byte) (int, error) {
	if r.late > mostLate {
		r.tooMuch = true
		return 0, io.EOF
	}
	n, err := r.events.Read(p)
	r.bytes += int64(n)
	if r.ending.Load() {
		r.late += int64(n)
	}
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// decode writes the records of the stream. That it is not understood to its end is no
// error here.
func (r *stream) decode(to trace.Writer, o decoder.Options) error {
	in, err := decoder.NewReader(r, o)
	if err == nil {
		err = trace.Copy(to, in)
	}
	if _, ok := errors.AsType[*trace.SyntaxError](err); ok {
		r.flawed, err = err, nil
	}
	return err
}

// verdict says what is missing of the events; nil for nothing. stopErr is what stop
// has returned.
func (r *stream) verdict(stopErr error) error {
	switch {
	case r.tooMuch:
		return cli.Incompletef("the runtime of process %d sent more than %s after the end of the recording: the rest is missing", r.pid, size(uint64(mostLate)))
	case r.flawed == nil:
		return nil
	case stopErr != nil:
		return cli.Incompletef("the end of the events of process %d is missing: %v", r.pid, stopErr)
	case errors.Is(r.flawed, trace.ErrTruncated):
		return cli.Incompletef("the events of process %d break off: it has ended, or was killed", r.pid)
	}
	return cli.Incompletef("the events of process %d are not understood to their end: %v", r.pid, r.flawed)
}
