package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/internal/topview"
	"rtrace-bpf/trace"
)

// Name is what the files are called in an [output.NoDirectoryError].
const Name = "snapshots"

// Files writes the snapshots of a process next to its trace. Its methods are called by the
// goroutine that writes the trace. The files are written by another one, so that the trace
// does not wait for names.
type Files struct {
	options Options
	pid     int
	trace   string // its path, or the one that it would have
	line    *status.Line
	view    *watch.View    // takes the records of the trace
	model   *topview.Model // for JSON
	clock   clock
	wall    int64 // time since 1970 minus that of the tracer's clock; 0 if it is unknown

	taken   chan moment   // at most one waits to be written
	written chan struct{} // closed when nothing is written any more
	ending  sync.Once
	counts  struct{ taken, failed, skipped atomic.Int64 }
}

// moment is a snapshot that is not written yet.
type moment struct {
	watch.Snapshot
	number int64 // from 1
	at     int64 // on the tracer's clock
	last   bool
}

// Open prepares the snapshots of a process, made of what view has taken. It creates no file.
// The view must stay open until the snapshots are written.
func Open(pid int, out *output.Trace, view *watch.View, o Options, line *status.Line) (*Files, error) {
	base, ok := out.Base()
	if !ok {
		return nil, &output.NoDirectoryError{Files: Name, Path: out.Path()}
	}
	f := &Files{
		options: o, pid: pid, trace: base, line: line, view: view,
		clock: clock{every: int64(o.Every)}, taken: make(chan moment, 1), written: make(chan struct{}),
	}
	if err := missing(f.path(1)); err != nil {
		return nil, err
	}
	f.model = topview.New(f.view, topview.Options{By: topview.BySite, Order: topview.OrderLive})
	go f.run()
	return f, nil
}

// path returns the path of a snapshot.
func (f *Files) path(number int64) string {
	return fmt.Sprintf("%s.snapshot-%04d%s", f.trace, number, suffixes[f.options.Format])
}

// Pattern returns the paths of all snapshots, for messages.
func (f *Files) Pattern() string { return f.trace + ".snapshot-*" + suffixes[f.options.Format] }

// missing returns an error if there is a file.
func missing(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("snapshot %s: the file exists; remove it, or name another output", path)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// Measured takes the state of the recording, which the snapshots from then on contain.
func (f *Files) Measured(m watch.Measure, ended bool) { f.view.Measured(f.pid, m, ended) }

// Observe takes a record of the trace, before the view takes it. If it is the first one after
// the time of a snapshot, that contains the records before it.
func (f *Files) Observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindHeader:
		if h := &r.Header; h.WallTime != 0 {
			f.wall = h.WallTime - h.ClockTime
		}
	case trace.KindCall, trace.KindLost, trace.KindExec:
		if at, due := f.clock.event(r.Time); due {
			f.take(at)
		}
	}
	f.clock.begin(r.Time)
}

// Tick takes the snapshot that is due if no event has come for a while. It is called about
// once a second, when all events so far have been passed to Observe.
func (f *Files) Tick() {
	if at, due := f.clock.idle(watch.Now()); due {
		f.take(at)
	}
}

// take takes a snapshot, and leaves it to the other goroutine, unless one waits there.
func (f *Files) take(at int64) {
	n := f.counts.taken.Add(1)
	if len(f.taken) == cap(f.taken) { // only this goroutine adds
		if f.counts.skipped.Add(1) == 1 {
			f.line.Print("process %d: snapshot %d is left out, because the ones before are still being written; choose a longer time with --snapshot", f.pid, n)
		}
		return
	}
	f.taken <- moment{Snapshot: f.snapshot(at), number: n, at: at}
}

// snapshot returns the state of the engine, with verdicts if the format has a place for them.
func (f *Files) snapshot(at int64) watch.Snapshot {
	return f.view.SnapshotAt(at, f.options.Format == "json")
}

// End writes the last snapshot, with all records, and returns when it is complete or hurry
// is closed.
func (f *Files) End(hurry <-chan struct{}) {
	at := f.clock.last
	m := moment{Snapshot: f.snapshot(at), number: f.counts.taken.Add(1), at: at, last: true}
	select {
	case f.taken <- m:
	case <-hurry:
		f.counts.skipped.Add(1)
	}
	f.Close()
	select {
	case <-f.written:
		return
	default:
	}
	select {
	case <-f.written:
	case <-hurry:
		f.counts.failed.Add(1)
	}
}

// Close releases everything when the snapshots that were taken are written. It does not
// wait for that.
func (f *Files) Close() { f.ending.Do(func() { close(f.taken) }) }

// Missing returns which snapshots were not written; empty for none.
func (f *Files) Missing() string {
	failed, skipped := f.counts.failed.Load(), f.counts.skipped.Load()
	if failed+skipped == 0 {
		return ""
	}
	var why []string
	if failed > 0 {
		why = append(why, fmt.Sprintf("%d could not be written", failed))
	}
	if skipped > 0 {
		why = append(why, fmt.Sprintf("%d were left out, because the ones before were still being written", skipped))
	}
	return fmt.Sprintf("%d of %d snapshots of process %d are missing (%s)", failed+skipped, f.counts.taken.Load(), f.pid, strings.Join(why, ", "))
}

// run writes the snapshots that were taken.
func (f *Files) run() {
	defer close(f.written)
	for m := range f.taken {
		if err := f.write(&m); err != nil && f.counts.failed.Add(1) == 1 {
			f.line.Print("process %d: %v; the recording goes on, and the summary counts the snapshots that are missing", f.pid, err)
		}
	}
}

// elapsed returns the time from the beginning of the trace to a moment.
func (f *Files) elapsed(m *moment) time.Duration { return time.Duration(m.at - f.clock.first) }
