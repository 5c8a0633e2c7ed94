package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/linux/machine"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/trace"
)

// scene adds to the records of a tracer what else swap has: open files at the start,
// and the state of the machine again and again. It puts them between the records of the
// tracer by their times.
type scene struct {
	pid     int
	dialect swap.Dialect
	to      trace.Writer
	period  time.Duration
	meter   *machine.Meter // nil for none
	alive   func() uint64  // bytes of live blocks behind the record that was read last
	warn    func(format string, args ...any)

	live    uint64 // alive of the record that was written last
	end     chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex // of waiting
	waiting []held
	count   atomic.Int64 // of waiting
}

// held is what comes before the first record of the tracer with a later time.
type held struct {
	record trace.Record
	system *swap.System // to make the record of; nil if it is made
}

// maxWaiting is how many states of the machine wait at most. When the output stands
// still no more are read.
const maxWaiting = 256

// sceneLag is how long something waits for records that may come before it, where there
// are none.
const sceneLag = int64(time.Second)

// openScene prepares what comes beside the calls; nil for formats without a place for
// it.
func (x *session) openScene() error {
	c := x.config
	if c.format != "swap" {
		return nil
	}
	dialect, err := swap.ParseDialect(c.swap.dialect)
	if err != nil {
		return err
	}
	s := &scene{pid: x.pid, dialect: dialect, period: c.machine.system, warn: x.status.print, end: make(chan struct{})}
	s.alive = func() uint64 { return x.tracer.LiveBytes() }
	if s.period > 0 {
		if s.meter, err = machine.New(x.pid); err != nil {
			return fmt.Errorf("--swap-system: %w", err)
		}
	}
	x.scene = s
	return nil
}

// processors returns how many elements SYSTEM's lists per processor have, 0 if there are
// none.
func (s *scene) processors() int {
	if s.meter == nil {
		return 0
	}
	return s.meter.Processors()
}

// write writes a record of the tracer, behind what is older. No two calls of it or of
// flush may run at a time.
func (s *scene) write(r *trace.Record) error {
	if r.Kind == trace.KindProcess {
		return s.begin(r)
	}
	err := s.flush(r.Time)
	if err == nil {
		err = s.to.WriteRecord(r)
	}
	if s.meter != nil {
		s.live = s.alive()
	}
	return err
}

// begin writes the record about the process, and starts what comes beside it.
func (s *scene) begin(r *trace.Record) error {
	p := *r
	if args, err := proc.Cmdline(s.pid); err == nil && len(args) > 0 && s.dialect == swap.Document {
		p.Process.Name = strings.Join(args, " ")
	}
	s.files(r.Time)
	if s.meter != nil {
		var first machine.Reading
		switch err := s.meter.Read(&first); {
		case err == nil:
			s.system(&first, r.Time)
			s.running.Go(s.run)
		case !errors.Is(err, machine.ErrGone):
			return fmt.Errorf("state of the machine: %w", err)
		}
	}
	return s.to.WriteRecord(&p)
}

// files tells which files the process has open.
func (s *scene) files(now int64) {
	all, err := proc.Files(s.pid)
	if err != nil {
		s.add(held{record: trace.Record{Kind: trace.KindComment, Time: now, PID: int32(s.pid), Comment: err.Error()}})
		return
	}
	list := make([]swap.OpenFile, len(all))
	for i, f := range all {
		list[i] = swap.OpenFile{FD: int32(f.FD), Size: f.Size, Path: f.Path}
	}
	status, listed := swap.Status(s.dialect, now, int32(s.pid), list)
	s.add(held{record: status})
	if listed < len(all) {
		text := fmt.Sprintf("%d of %d open files are listed: a message has no room for more", listed, len(all))
		s.add(held{record: trace.Record{Kind: trace.KindComment, Time: now, PID: int32(s.pid), Comment: text}})
	}
}

// run reads the state of the machine until the end of the recording, or of the process.
func (s *scene) run() {
	var r machine.Reading
	again := time.NewTimer(s.period)
	defer again.Stop()
	// No two readings are closer than a period, also where one was late.
	for ; ; again.Reset(s.period) {
		select {
		case <-s.end:
			return
		case <-again.C:
		}
		if s.count.Load() >= maxWaiting {
			continue
		}
		switch err := s.meter.Read(&r); {
		case errors.Is(err, machine.ErrGone):
			return
		case err != nil:
			s.warn("process %d: the state of the machine is not told any more: %v", s.pid, err)
			return
		}
		s.system(&r, r.Time)
	}
}

// system queues a state of the machine.
func (s *scene) system(r *machine.Reading, now int64) {
	s.add(held{record: trace.Record{Time: now, PID: int32(s.pid)}, system: systemOf(r)})
}

func (s *scene) add(w held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, w)
	s.count.Add(1)
}

// next takes what is older than a time.
func (s *scene) next(before int64) (w held, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.waiting[0].record.Time >= before {
		return w, false
	}
	w = s.waiting[0]
	s.waiting = append(s.waiting[:0], s.waiting[1:]...)
	s.count.Add(-1)
	return w, true
}

// flush writes what is older than a time.
func (s *scene) flush(before int64) error {
	for s.count.Load() > 0 {
		w, ok := s.next(before)
		if !ok {
			return nil
		}
		if w.system != nil {
			w.system.Target.TotalAlloc = s.live
			w.record = w.system.Record(w.record.Time, w.record.PID)
		}
		if err := s.to.WriteRecord(&w.record); err != nil {
			return err
		}
	}
	return nil
}

// tick is called about once a second: where there are no records nothing waits longer.
func (s *scene) tick() error {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail with these arguments
	return s.flush(now.Nano() - sceneLag)
}

// stop ends what runs beside the tracer. It may be called more than once.
func (s *scene) stop() {
	if s == nil {
		return
	}
	select {
	case <-s.end:
		return
	default:
	}
	close(s.end)
	s.running.Wait()
	if s.meter != nil {
		s.meter.Close()
	}
}
