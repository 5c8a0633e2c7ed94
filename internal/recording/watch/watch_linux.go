package watch

import (
	"cmp"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/recording/cost"
	"rtrace-bpf/internal/recording/naming"
	"rtrace-bpf/trace"
)

// Watch takes the records of all sessions of a recording. Its methods may be called by
// several goroutines.
type Watch struct {
	mu     sync.Mutex // of what follows
	engine *aggregate.Engine
	all    map[int]*process
	last   int64 // time of the last record

	naming sync.Mutex // held while places are named, so that nothing else waits for it
}

// process is a process that is or was traced.
type process struct {
	Process
	observed []trace.Record // about mappings, that places have not taken
	places   *naming.Places
	before   int // call sites with lower numbers are those of programs before an exec
}

// Process is what is known of a process.
type Process struct {
	PID     int
	Name    string
	Measure Measure
	Execs   int  // how often it executed another program while it was traced
	Ended   bool // its recording has ended
}

// Measure is the state of the recording of a process.
type Measure struct {
	RSS    uint64 // resident bytes; 0 if they are not known
	Calls  uint64 // that were recorded
	Lost   uint64 // events
	Losses string // their kinds; empty for none
	Pauses uint64
	Cost   cost.Interval // the last one that was measured
	Factor float64       // how many times as much processor time it took since recording began; 0 if it is not known
}

// New returns a Watch that has seen nothing.
func New() *Watch { return &Watch{engine: aggregate.New(), all: make(map[int]*process)} }

// Writer returns the writer of a session, which takes the records of its process.
func (w *Watch) Writer(pid int) trace.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.all[pid]
	if p == nil {
		p = &process{Process: Process{PID: pid}, places: naming.OpenPlaces(pid)}
		w.all[pid] = p
	}
	p.Ended = false
	return &writer{w, p}
}

// writer is the way of one process's records.
type writer struct {
	watch   *Watch
	process *process
}

var _ trace.Writer = (*writer)(nil)

// WriteRecord implements trace.Writer.
func (x *writer) WriteRecord(r *trace.Record) error {
	w := x.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engine.Add(r)
	w.last = max(w.last, r.Time)
	switch r.Kind {
	case trace.KindCall:
		return nil
	case trace.KindExec:
		x.process.Execs++
		x.process.Name, x.process.before = r.Exec.Name, w.engine.Len()
	case trace.KindProcess:
		x.process.Name = r.Process.Program()
	case trace.KindHeader, trace.KindModule, trace.KindMapping, trace.KindUnmapping, trace.KindFunction:
	default:
		return nil
	}
	own := *r
	own.Call = trace.Call{}
	x.process.observed = append(x.process.observed, own)
	return nil
}

// Flush implements trace.Writer.
func (x *writer) Flush() error { return nil }

// Close implements trace.Writer.
func (x *writer) Close() error { return nil }

// Measured takes the state of the recording of a process. ended reports that it is the last
// one.
func (w *Watch) Measured(pid int, m Measure, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.all[pid]; p != nil {
		p.Measure, p.Ended = m, ended
	}
}

// Snapshot is all that a Watch has seen.
type Snapshot struct {
	*aggregate.State
	Processes []Process // by number
	// Suspects holds the call sites whose blocks pile up, if they were asked for, for each type of
	// resource in the order of State.Resources the fastest in bytes first.
	Suspects []aggregate.Suspect
	Judged   bool // Suspects were asked for, and verdicts on call sites are possible
}

// Snapshot closes an interval of the engine now, and returns its state.
func (w *Watch) Snapshot() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.snapshot(max(Now(), w.last))
	w.judge(&s)
	return s
}

// SnapshotAt closes an interval of the engine at a time of the tracer's clock, in
// nanoseconds, and returns its state. It has Suspects if judge is set, which takes longer.
func (w *Watch) SnapshotAt(at int64, judge bool) Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.snapshot(at)
	if judge {
		w.judge(&s)
	}
	return s
}

// judge adds the call sites whose blocks pile up.
func (w *Watch) judge(s *Snapshot) {
	for i := range s.Resources {
		if of := s.Resources[i].Type; w.engine.Judges(of) {
			s.Judged = true
			s.Suspects = append(s.Suspects, w.engine.Suspects(of)...)
		}
	}
}

func (w *Watch) snapshot(at int64) Snapshot {
	w.engine.Interval(at)
	s := Snapshot{State: w.engine.State()}
	for _, p := range w.all {
		s.Processes = append(s.Processes, p.Process)
	}
	slices.SortFunc(s.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return s
}

// Now returns the time of the tracer's clock, in nanoseconds.
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return ts.Nano()
}

// Detail returns further figures of a call site.
func (w *Watch) Detail(site int) aggregate.Detail {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engine.Detail(site)
}

// Place names the place of a call site. It may take seconds to read debugging information,
// and nothing is held up meanwhile. A place never changes: keep it.
func (w *Watch) Place(site int) naming.Place {
	place := naming.Place{Function: "in the program before an exec"}
	w.locate(site, func(p *process, r *trace.Record) { place = p.places.Find(r.PID, &r.Call.Stack) })
	return place
}

// locate calls name with the place of a call site, unless its program is no longer mapped.
func (w *Watch) locate(site int, name func(*process, *trace.Record)) {
	w.naming.Lock()
	defer w.naming.Unlock()
	var r trace.Record
	w.mu.Lock()
	w.engine.Place(site, &r)
	p := w.all[int(r.PID)]
	old := p == nil || site < p.before
	var observed []trace.Record
	if p != nil {
		observed, p.observed = p.observed, nil
	}
	w.mu.Unlock()
	for i := range observed {
		p.places.Observe(&observed[i])
	}
	if !old {
		name(p, &r)
	}
}

// manyObserved is how many records about mappings are kept until a place is named.
const manyObserved = 1 << 10

// Settle passes on what was recorded about mappings, if that is much, so that it takes no more
// memory. It does not wait while places are named.
func (w *Watch) Settle() {
	if !w.naming.TryLock() {
		return
	}
	defer w.naming.Unlock()
	w.mu.Lock()
	observed := make(map[*process][]trace.Record)
	for _, p := range w.all {
		if len(p.observed) >= manyObserved {
			observed[p], p.observed = p.observed, nil
		}
	}
	w.mu.Unlock()
	for p, records := range observed {
		for i := range records {
			p.places.Observe(&records[i])
		}
	}
}

// Close releases the files of the processes. Places are no longer named.
func (w *Watch) Close() {
	w.naming.Lock()
	defer w.naming.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.all {
		p.places.Close()
	}
}
