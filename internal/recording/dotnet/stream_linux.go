package dotnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	decoder "rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/internal/cli"
	diagnostics "rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/trace"
)

// stream is the stream of events of a runtime.
type stream struct {
	config diagnostics.Config
	line   *status.Line
	pid    int
	client *diagnostics.Client
	info   *diagnostics.Info
	events *diagnostics.Session // nil before begin

	bytes   int64       // that were read
	ending  atomic.Bool // the recording is over, and what is read now is the end of the stream
	late    int64       // bytes that were read since
	tooMuch bool        // more came than is read
	flawed  error       // why the stream could not be read to its end; nil if it could
}

// errHurried is the reason why the end of a stream is missing after a second signal.
var errHurried = errors.New("ended at once by a second signal")

// findStream finds the runtime of a process.
func findStream(ctx context.Context, pid int, config diagnostics.Config, line *status.Line) (*stream, error) {
	client, err := diagnostics.Find(pid)
	if err != nil {
		return nil, err
	}
	info, err := client.ProcessInfo(ctx)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return &stream{config: config, line: line, pid: pid, client: client, info: info}, nil
}

// begin makes the runtime send its events. They must be read from then on.
func (r *stream) begin(ctx context.Context) (err error) {
	if r.events, err = r.client.CollectTracing(ctx, r.config); err != nil {
		r.events = nil
		return fmt.Errorf("process %d: %w", r.pid, err)
	}
	return nil
}

// Limits on the wait for the end of a stream.
const (
	// lateEnd is for a runtime that does not accept the request to end it. The stream of a
	// process that has ended ends by itself.
	lateEnd = 2 * time.Second
	// longEnd is for a runtime that has reported that the end is written.
	longEnd = 10 * time.Minute
)

// mostLate is how many bytes of a stream are read after the end of the recording: the data
// that the runtime has buffered, at most 256 MiB, and the names of methods. A process whose
// events have no end would fill the disk.
var mostLate int64 = 512 << 20

// stop ends the stream: as planned, or at once when hurry is closed. copied is closed when
// the stream is read to its end.
func (r *stream) stop(hurry, copied <-chan struct{}) error {
	r.ending.Store(true)
	r.line.Say("the runtime writes the names of methods; Ctrl-C leaves them out")
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
	// Data that has not come by now may never end.
	return errors.Join(err, r.events.Close())
}

// Read reads the stream. A stream that was closed ends; its content shows whether it is
// complete.
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

// decode writes the records of the stream. A stream that is not understood to its end is
// no error; verdict reports it.
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

// verdict returns which events are missing, nil if none are. stopErr is the result of
// stop.
func (r *stream) verdict(stopErr error) error {
	switch {
	case r.tooMuch:
		return cli.Incompletef("the runtime of process %d sent more than %s after the end of the recording: the rest is missing", r.pid, status.Bytes(uint64(mostLate)))
	case r.flawed == nil:
		return nil
	case stopErr != nil:
		return cli.Incompletef("the end of the events of process %d is missing: %v", r.pid, stopErr)
	case errors.Is(r.flawed, trace.ErrTruncated):
		return cli.Incompletef("the events of process %d break off: it has ended, or was killed", r.pid)
	}
	return cli.Incompletef("the events of process %d are not understood to their end: %v", r.pid, r.flawed)
}
