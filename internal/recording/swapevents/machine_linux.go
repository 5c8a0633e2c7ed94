package swapevents

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

// Options select what a Machine adds.
type Options struct {
	Dialect swap.Dialect
	Period  time.Duration // between two states of the machine; 0 for none
}

// Machine is a writer that adds the files that the process has open at the start, and the
// state of the machine again and again, to the records of a tracer. It orders all by time.
type Machine struct {
	pid     int
	options Options
	to      trace.Writer
	meter   *machine.Meter // nil if no states of the machine are added
	warn    func(format string, args ...any)

	// live returns the bytes of live blocks after the record that was read last.
	live    func() uint64
	written uint64 // live after the record that was written last

	end     chan struct{} // closed by Stop
	running sync.WaitGroup

	mu    sync.Mutex // of queue
	queue []queued
	count atomic.Int64 // of queue
}

// queued is a record that is written before the first record of the tracer with a later
// time.
type queued struct {
	record trace.Record
	system *swap.System // to make the record of; nil if it is made
}

// maxQueued is how many states of the machine are queued at most. While the output is
// blocked, no more are read.
const maxQueued = 256

// maxWait is how long a queued record waits for earlier ones of the tracer, in
// nanoseconds.
const maxWait = int64(time.Second)

// NewMachine prepares a Machine for a process. live returns the bytes of its live blocks,
// warn prints a warning.
func NewMachine(pid int, o Options, live func() uint64, warn func(format string, args ...any)) (*Machine, error) {
	m := &Machine{pid: pid, options: o, warn: warn, live: live, end: make(chan struct{})}
	if o.Period > 0 {
		var err error
		if m.meter, err = machine.New(pid); err != nil {
			return nil, fmt.Errorf("state of the machine: %w", err)
		}
	}
	return m, nil
}

// To sets where records go. It must be called before the first record.
func (m *Machine) To(w trace.Writer) { m.to = w }

// Processors returns the number of processors in the states of the machine, 0 if there
// are none.
func (m *Machine) Processors() int {
	if m.meter == nil {
		return 0
	}
	return m.meter.Processors()
}

// WriteRecord writes a record of the tracer, after queued ones with earlier times. It must
// not run at the same time as Tick.
func (m *Machine) WriteRecord(r *trace.Record) error {
	if r.Kind == trace.KindProcess {
		return m.begin(r)
	}
	err := m.flush(r.Time)
	if err == nil {
		err = m.to.WriteRecord(r)
	}
	if m.meter != nil {
		m.written = m.live()
	}
	return err
}

// begin writes the record about the process, and starts reading the machine.
func (m *Machine) begin(r *trace.Record) error {
	p := *r
	if args, err := proc.Cmdline(m.pid); err == nil && len(args) > 0 && m.options.Dialect == swap.Document {
		p.Process.Name = strings.Join(args, " ")
	}
	m.files(r.Time)
	if m.meter != nil {
		var first machine.Reading
		switch err := m.meter.Read(&first); {
		case err == nil:
			m.system(&first, r.Time)
			m.running.Go(m.run)
		case !errors.Is(err, machine.ErrGone):
			return fmt.Errorf("state of the machine: %w", err)
		}
	}
	return m.to.WriteRecord(&p)
}

// files queues the files that the process has open.
func (m *Machine) files(now int64) {
	all, err := proc.Files(m.pid)
	if err != nil {
		m.comment(now, err.Error())
		return
	}
	list := make([]swap.OpenFile, len(all))
	for i, f := range all {
		list[i] = swap.OpenFile{FD: int32(f.FD), Size: f.Size, Path: f.Path}
	}
	status, listed := swap.Status(m.options.Dialect, now, int32(m.pid), list)
	m.add(queued{record: status})
	if listed < len(all) {
		m.comment(now, fmt.Sprintf("%d of %d open files are listed: a message has no room for more", listed, len(all)))
	}
}

func (m *Machine) comment(now int64, text string) {
	m.add(queued{record: trace.Record{Kind: trace.KindComment, Time: now, PID: int32(m.pid), Comment: text}})
}

// run reads the state of the machine until the end of the recording, or of the process.
func (m *Machine) run() {
	var r machine.Reading
	again := time.NewTimer(m.options.Period)
	defer again.Stop()
	// Two readings are never closer than a period, even if one was late.
	for ; ; again.Reset(m.options.Period) {
		select {
		case <-m.end:
			return
		case <-again.C:
		}
		if m.count.Load() >= maxQueued {
			continue
		}
		switch err := m.meter.Read(&r); {
		case errors.Is(err, machine.ErrGone):
			return
		case err != nil:
			m.warn("process %d: the state of the machine is not recorded any more: %v", m.pid, err)
			return
		}
		m.system(&r, r.Time)
	}
}

// system queues a state of the machine.
func (m *Machine) system(r *machine.Reading, now int64) {
	m.add(queued{record: trace.Record{Time: now, PID: int32(m.pid)}, system: systemOf(r)})
}

func (m *Machine) add(q queued) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue = append(m.queue, q)
	m.count.Add(1)
}

// next takes the first queued record if it is older than a time.
func (m *Machine) next(before int64) (q queued, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.queue) == 0 || m.queue[0].record.Time >= before {
		return q, false
	}
	q = m.queue[0]
	m.queue = append(m.queue[:0], m.queue[1:]...)
	m.count.Add(-1)
	return q, true
}

// flush writes queued records that are older than a time.
func (m *Machine) flush(before int64) error {
	for m.count.Load() > 0 {
		q, ok := m.next(before)
		if !ok {
			return nil
		}
		if q.system != nil {
			q.system.Target.TotalAlloc = m.written
			q.record = q.system.Record(q.record.Time, q.record.PID)
		}
		if err := m.to.WriteRecord(&q.record); err != nil {
			return err
		}
	}
	return nil
}

// Tick writes queued records that have waited long enough. It is called about once a
// second.
func (m *Machine) Tick() error {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail with these arguments
	return m.flush(now.Nano() - maxWait)
}

// Stop ends the readings. It may be called more than once.
func (m *Machine) Stop() {
	select {
	case <-m.end:
		return
	default:
	}
	close(m.end)
	m.running.Wait()
	if m.meter != nil {
		m.meter.Close()
	}
}
