package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	decoder "rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// beside is the recording of the events of a runtime while its allocator is
// traced. They come a tenth of a second late, and methods at the very end; so they
// are kept and put among the native calls when both are complete.
type beside struct {
	*stream
	file  *spool.File
	ended chan struct{} // closed when nothing more is written to file

	clock   clocks
	threads *threadIDs // nil if the process has the ids that are seen from here
	counts  struct{ calls, functions, others, lost uint64 }
	err     error // of the keeping
	stopErr error
	whole   bool // the end was waited for
}

var _ trace.Writer = (*beside)(nil)

// managedResource is the first number of the runtime's resources, beyond those of
// the tracer.
const managedResource = 1000

// openBeside prepares the recording: it finds the runtime, and a place for its events
// in the folder given.
func openBeside(ctx context.Context, c *config, pid int, s *status, folder string) (*beside, error) {
	from, err := findStream(ctx, c, pid, s)
	if err != nil {
		return nil, err
	}
	b := &beside{stream: from, ended: make(chan struct{})}
	if from.info.PID != uint64(pid) {
		b.threads = &threadIDs{pid: pid}
	}
	b.file, err = spool.Create(folder)
	return b, err
}

// begin starts the recording.
func (b *beside) begin(ctx context.Context) error {
	if err := b.stream.begin(ctx); err != nil {
		return err
	}
	b.clock.start()
	go func() {
		defer close(b.ended)
		b.err = b.decode(b, decoder.Options{FirstResource: managedResource})
	}()
	return nil
}

// end waits for what the runtime says at its end, unless the user is in a hurry.
func (b *beside) end(hurry <-chan struct{}) error {
	b.whole = true
	select {
	case <-b.ended:
	default:
		b.stopErr = b.stop(hurry, b.ended)
	}
	return b.abandon()
}

// abandon ends the recording as it is.
func (b *beside) abandon() error {
	if b.events == nil {
		return nil // it had not begun
	}
	err := b.events.Close()
	<-b.ended
	b.status.clear()
	return errors.Join(err, b.err)
}

// discard gives up what was kept.
func (b *beside) discard() error { return errors.Join(b.abandon(), b.file.Close()) }

// missing says what is not there of the runtime's events; empty for nothing.
func (b *beside) missing() string {
	if !b.whole {
		return ""
	}
	if err := b.verdict(b.stopErr); err != nil {
		return err.Error()
	}
	if b.counts.lost > 0 {
		return fmt.Sprintf("the runtime has dropped %d of its events", b.counts.lost)
	}
	return ""
}

// summary tells what there is.
func (b *beside) summary() string {
	c := &b.counts
	return fmt.Sprintf("of the runtime: %d sampled allocations, %d other events, %d methods", c.calls, c.others, c.functions)
}

// WriteRecord implements trace.Writer: it keeps what the stream says, as the native
// trace would.
func (b *beside) WriteRecord(r *trace.Record) error {
	switch r.Kind {
	case trace.KindHeader:
		if by := b.clock.set(&r.Header); by != 0 {
			b.status.print("the clock of the runtime is %v off that of the machine: its times are corrected, to milliseconds", by.Round(time.Millisecond))
		}
		return nil
	case trace.KindProcess, trace.KindEnd:
		return nil // the native trace has them
	case trace.KindCall:
		b.counts.calls++
		r.Call.EntryTime = b.clock.native(r.Call.EntryTime)
	case trace.KindFunction:
		b.counts.functions++
	case trace.KindLost:
		b.counts.lost += r.Lost.Count
		r.Lost.Reason, r.Lost.Since = "event of the runtime", b.clock.native(r.Lost.Since)
	case trace.KindResource:
	default:
		b.counts.others++
	}
	r.Time = b.clock.native(r.Time)
	if r.PID = int32(b.pid); b.threads != nil {
		r.TID = b.threads.outer(r.TID)
	}
	return b.file.WriteRecord(r)
}

// Flush implements trace.Writer. What is kept is for the end.
func (b *beside) Flush() error { return nil }

// Close implements trace.Writer. It keeps what there is.
func (b *beside) Close() error { return nil }

// clocks relate the clock of a runtime to that of the tracer. Both are
// CLOCK_MONOTONIC; in another time namespace that shows other times.
type clocks struct {
	wall, monotonic int64 // at one moment, ns
	shift           int64 // what is added to times of the runtime, ns
}

// sameClock is how far clocks may seem apart that are one: the runtime gives the
// date of its clock in milliseconds, and the date may be corrected meanwhile.
const sameClock = int64(100 * time.Millisecond)

// start notes what the tracer's clock shows.
func (c *clocks) start() {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // cannot fail with these arguments
	c.monotonic, c.wall = at.Nano(), time.Now().UnixNano()
}

// set takes over what the runtime's shows, and returns how far it is off; 0 if it is
// the same clock.
func (c *clocks) set(h *trace.Header) time.Duration {
	if h.WallTime == 0 {
		return 0
	}
	by := (h.WallTime - h.ClockTime) - (c.wall - c.monotonic)
	if by > sameClock || by < -sameClock {
		c.shift = by
	}
	return time.Duration(c.shift)
}

// native returns a time of the runtime on the tracer's clock; 0 stays none.
func (c *clocks) native(t int64) int64 {
	if t == 0 {
		return 0
	}
	return t + c.shift
}

// threadIDs finds the threads of a process in another namespace.
type threadIDs struct {
	pid   int
	known map[int32]int32
}

// outer returns the id that a thread has here by that in its namespace; 0 if it is
// gone.
func (t *threadIDs) outer(inner int32) int32 {
	if id, ok := t.known[inner]; ok || inner == 0 {
		return id
	}
	if t.known == nil {
		t.known = make(map[int32]int32)
	}
	all, _ := proc.Threads(t.pid) // none of a process that is gone
	for _, thread := range all {
		if s, err := proc.ReadStatus(thread.TID); err == nil && len(s.NSPID) > 0 {
			t.known[int32(s.NSPID[len(s.NSPID)-1])] = int32(thread.TID)
		}
	}
	if _, ok := t.known[inner]; !ok {
		t.known[inner] = 0
	}
	return t.known[inner]
}

// checkBeside says what --native does not go with.
func (d *dotnetConfig) checkBeside(c *config) error {
	switch {
	case !d.native:
		return nil
	case !d.on:
		return errors.New("--native goes with --dotnet: native calls alone are what is traced without both")
	case !wholeFormat(c.format):
		return cli.Usagef("%s cannot hold events of a runtime beside native calls: write nettrace or jsonl", c.format)
	}
	return nil
}
