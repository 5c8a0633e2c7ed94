package recording

import (
	"rtrace-bpf/internal/recording/watch"
	"rtrace-bpf/trace"
)

// sums adds up the records of a session by call site, for the verdicts of its summary and for
// snapshots. The zero sums is off.
type sums struct {
	view *watch.View  // nil if it is off
	to   trace.Writer // of the view
}

// newSums returns what adds up the records of a process, which is off if nothing needs it.
func newSums(pid int, o *Options) sums {
	if o.Tracer.NoLive && o.Snapshots.Every == 0 {
		return sums{}
	}
	view := watch.NewView()
	return sums{view, view.Writer(pid)}
}

// add adds a record.
func (s *sums) add(rec *trace.Record) {
	if s.view != nil {
		_ = s.to.WriteRecord(rec) // it cannot fail
	}
}

// tick is called about once a second.
func (s *sums) tick() {
	if s.view != nil {
		s.view.Settle()
	}
}

// verdicts are those of a session at its end.
type verdicts struct {
	view *watch.View // nil for none
	at   watch.Snapshot
}

// verdicts returns the verdicts on the records of a process, whose recording ended with m at a
// time of the tracer's clock, in nanoseconds.
func (s *sums) verdicts(pid int, m watch.Measure, at int64) verdicts {
	if s.view == nil {
		return verdicts{}
	}
	s.view.Measured(pid, m, true)
	return verdicts{s.view, s.view.SnapshotAt(at, true)}
}

// lines returns the verdicts as lines. Naming the suspects may take seconds; hurry is closed
// when it is not to be waited for, and then there are no lines.
func (v *verdicts) lines(hurry <-chan struct{}) func(columns int) []string {
	if v.view == nil {
		return nil
	}
	return func(columns int) (lines []string) {
		named := make(chan []string, 1)
		go func() { named <- v.view.Verdicts(v.at, columns) }()
		select {
		case lines = <-named:
		case <-hurry:
		}
		return lines
	}
}

// close releases the files of the process. It does not wait for names, which nobody needs any
// more after a hurry.
func (s *sums) close() {
	if s.view != nil {
		go s.view.Close()
	}
}
