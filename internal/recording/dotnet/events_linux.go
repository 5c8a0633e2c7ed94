package dotnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	decoder "rtrace-bpf/decoder/nettrace"
	diagnostics "rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// Events records the events of a runtime while the native allocator of its process is
// traced. Events come a tenth of a second late, and methods at the very end. So events are
// kept in a file, and merged with the native calls when both are complete.
type Events struct {
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

var _ trace.Writer = (*Events)(nil)

// FirstResource is the first number of the runtime's resources, which is larger than
// those of the tracer.
const FirstResource = 1000

// OpenEvents finds the runtime of a process, and creates the file for its events in the
// directory dir.
func OpenEvents(ctx context.Context, pid int, events diagnostics.Config, line *status.Line, dir string) (*Events, error) {
	from, err := findStream(ctx, pid, events, line)
	if err != nil {
		return nil, err
	}
	b := &Events{stream: from, ended: make(chan struct{})}
	if from.info.PID != uint64(pid) {
		b.threads = &threadIDs{pid: pid}
	}
	if b.file, err = spool.Create(dir); err != nil {
		return nil, err
	}
	return b, nil
}

// Begin starts the recording.
func (b *Events) Begin(ctx context.Context) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	b.clock.start()
	go func() {
		defer close(b.ended)
		b.err = b.decode(b, decoder.Options{FirstResource: FirstResource})
	}()
	return nil
}

// End ends the recording and waits for the end of the events, unless hurry is closed.
func (b *Events) End(hurry <-chan struct{}) error {
	b.whole = true
	select {
	case <-b.ended:
	default:
		b.stopErr = b.stop(hurry, b.ended)
	}
	return b.Abandon()
}

// Abandon ends the recording without its end.
func (b *Events) Abandon() error {
	if b.events == nil {
		return nil // it has not begun
	}
	err := b.events.Close()
	<-b.ended
	b.line.Clear()
	return errors.Join(err, b.err)
}

// Discard ends the recording and removes the events.
func (b *Events) Discard() error { return errors.Join(b.Abandon(), b.file.Close()) }

// Release removes the file of the events, after Merge was read.
func (b *Events) Release() error { return b.file.Close() }

// Merge returns a reader of the native records with the events of the runtime among them,
// ordered by time. It is for after End.
func (b *Events) Merge(native trace.Reader) trace.Reader {
	managed, err := b.file.Reader()
	return &merged{native: ahead{from: native}, managed: ahead{from: managed, err: err}}
}

// Missing returns which of the runtime's events are missing; empty if none are.
func (b *Events) Missing() string {
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

// Summary returns the counts of events.
func (b *Events) Summary() string {
	c := &b.counts
	return fmt.Sprintf("of the runtime: %d sampled allocations, %d other events, %d methods", c.calls, c.others, c.functions)
}

// WriteRecord implements trace.Writer. It keeps records of the stream, with times and ids
// as in the native trace.
func (b *Events) WriteRecord(r *trace.Record) error {
	switch r.Kind {
	case trace.KindHeader:
		if by := b.clock.set(&r.Header); by != 0 {
			b.line.Print("the clock of the runtime differs from that of the machine by %v: its times are corrected, to milliseconds", by.Round(time.Millisecond))
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

// Flush implements trace.Writer. It does nothing: the records are for the end.
func (b *Events) Flush() error { return nil }

// Close implements trace.Writer. It does nothing: Merge reads the records.
func (b *Events) Close() error { return nil }

// clocks relate the clock of a runtime to that of the tracer. Both are CLOCK_MONOTONIC,
// which differs in other time namespaces.
type clocks struct {
	wall, monotonic int64 // at one moment, ns
	shift           int64 // that is added to times of the runtime, ns
}

// sameClock is how many nanoseconds the same clock may seem to differ: the runtime reports
// the date of its clock in milliseconds, and the date may be corrected meanwhile.
const sameClock = int64(100 * time.Millisecond)

// start reads the tracer's clock.
func (c *clocks) start() {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // cannot fail with these arguments
	c.monotonic, c.wall = at.Nano(), time.Now().UnixNano()
}

// set takes the runtime's clock from a header, and returns its difference; 0 if it is the
// same clock.
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

// native returns a time of the runtime on the tracer's clock. 0 is no time, and remains 0.
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

// outer returns the id of a thread in this namespace. inner is the id in its own one. The
// result is 0 if the thread has ended.
func (t *threadIDs) outer(inner int32) int32 {
	if id, ok := t.known[inner]; ok || inner == 0 {
		return id
	}
	if t.known == nil {
		t.known = make(map[int32]int32)
	}
	all, _ := proc.Threads(t.pid) // none if the process has ended
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
