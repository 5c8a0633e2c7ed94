package order

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/ring"
)

// ClockSlack is how much later than its time stamp a perf record may appear, in
// nanoseconds: the kernel reads the time before it reserves the place, with preemption
// off.
const ClockSlack = 2_000_000

// SideKind is the kind of a side.
type SideKind uint8

// The kinds of sides.
const (
	SideMap      SideKind = iota // an executable mapping appeared
	SideName                     // a thread changed its name
	SideExec                     // the process replaced its program; Name is the new one
	SideExit                     // a thread ended
	SideFork                     // the process made another process, with the ID TID
	SideThread                   // thread Parent made thread TID
	SideSnapshot                 // the process's mappings were read again
	SideTables                   // the unwind tables of Snapshot are in the kernel
	SideAudit                    // the kernel dropped sideband records after Since; Snapshot and Threads were read again
	SideDrops                    // loss counters grew
	SideWork                     // the work of unwinding up to now
	SideGap                      // nothing was recorded between Seen and Time
	SideMark                     // the user set the mark Name
	SideWindow                   // Window opens, changes or closes
)

// Side is a rare record about a process. It has its own place in the order of events, but
// is not kept in the queues.
type Side struct {
	Kind     SideKind
	Time     uint64
	PID, TID uint32
	Parent   uint32 // of a SideThread
	Name     string // of a thread, program or mark
	Mapping  process.Mapping
	Snapshot []process.Mapping
	Threads  []proc.Thread
	Since    uint64 // SideAudit: all records up to this time were received
	Seen     uint64 // when reading Snapshot, or the gap, began
	Lost     uint64
	Reason   Loss
	Work     Work
	Window   trace.Window
	Number   uint64 // of a SideMap or SideExec, in order of arrival; SideTables: the last one it includes
}

// Layout of perf records (include/uapi/linux/perf_event.h), after the header.
const (
	mmap2Fixed  = 64      // pid, tid, addr, len, pgoff, maj, min, ino, ino_generation, prot, flags
	sampleIDLen = 32      // pid, tid, time, id, cpu, reserved: see sidebandAttr
	commExec    = 1 << 13 // PERF_RECORD_MISC_COMM_EXEC
	largestSide = 5 << 10 // bytes of the largest record, one with a path of PATH_MAX
)

// sidebandAttr describes an event that has no records of its own. Its buffer uses the
// time stamps of CLOCK_MONOTONIC, like the events of the programs.
func sidebandAttr() *unix.PerfEventAttr {
	return &unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_DUMMY,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_ID | unix.PERF_SAMPLE_CPU,
		Bits:        unix.PerfBitSampleIDAll | unix.PerfBitUseClockID,
		Clockid:     unix.CLOCK_MONOTONIC,
	}
}

// Sideband reads the kernel's records about the traced process. There is a buffer for
// each CPU; the subscription determines which processes have records there.
type Sideband struct {
	PID          uint32
	CPUs         []int
	Rings        []*ring.Perf
	last         []lastRecord // by ring
	Subscription *Subscription
	Way          plan.Sideband
	Limit        int       // maximum number of events of a subscription to single threads
	whole        [3]uint64 // times of the last polls, oldest first; no record before the oldest was dropped
	Dropped      bool      // records were, or may have been, dropped since then
	certain      bool      // the kernel reported it
	log          func(format string, args ...any)
}

// lastRecord is the last record of a ring that was not a repetition.
type lastRecord struct {
	id     uint64 // ID of the event that it came from
	record ring.Record
}

// OpenSideband makes the buffers and subscribes to the records of the plan's process. The
// caller must close the Sideband.
func OpenSideband(p *plan.Plan, cpus []int) (*Sideband, error) {
	o := &p.Options
	s := &Sideband{
		PID: uint32(p.Target.PID), CPUs: cpus, last: make([]lastRecord, len(cpus)),
		Limit: o.SubscriptionLimit(), log: o.Logf, Way: o.Sideband,
	}
	for i := range s.whole {
		s.whole[i] = Clock()
	}
	for _, cpu := range cpus {
		r, err := ring.NewPerf(sidebandAttr(), -1, cpu, o.SidebandBytes())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch mappings: %w", host.PerfRefused(err)), s.Close())
		}
		s.Rings = append(s.Rings, r)
	}
	way := o.Sideband
	if way == plan.SidebandAuto && len(cpus) > mostTaskCPUs {
		way = plan.SidebandMachine
	}
	if err := s.Subscribe(way); err != nil {
		return nil, errors.Join(fmt.Errorf("watch mappings: %w", host.PerfRefused(err)), s.Close())
	}
	return s, nil
}

// Subscribe starts to receive records in the given way and replaces the earlier
// subscription. Records from the time of the change may come twice, but none is missing.
func (s *Sideband) Subscribe(way plan.Sideband) error {
	var next *Subscription
	var err error
	if way != plan.SidebandMachine {
		next, err = SubscribeThreads(int(s.PID), s.CPUs, s.Rings, s.Limit)
		if err != nil && way == plan.SidebandTask {
			return err
		}
		if err != nil {
			s.log("records of mappings and names come from all processes: %v", err)
		}
	}
	if next == nil {
		if next, err = subscribeMachine(s.CPUs, s.Rings); err != nil {
			return err
		}
	}
	before := s.Subscription
	s.Subscription = next
	if before != nil {
		return before.Close()
	}
	return nil
}

// Narrow subscribes to the process alone after the buffers were too small for the records
// of all processes. It tries once, and not if the plan chose the subscription.
func (s *Sideband) Narrow() {
	if s.Way != plan.SidebandAuto || s.PerTask() {
		return
	}
	s.Way = plan.SidebandMachine // it is tried once
	if err := s.Subscribe(plan.SidebandTask); err != nil {
		s.log("records of mappings and names still come from all processes: %v", err)
	}
}

// PerTask reports whether the buffers contain no records of other processes.
func (s *Sideband) PerTask() bool { return s.Subscription != nil && s.Subscription.perTask }

// Renew subscribes again if the kernel has closed the events of a process that continues,
// as it does when the process executes a set-user-ID program. It reports whether the
// process continues.
func (s *Sideband) Renew() (bool, error) {
	if !s.PerTask() {
		return false, nil
	}
	next, err := SubscribeThreads(int(s.PID), s.CPUs, s.Rings, s.Limit)
	if err == nil && !next.leader {
		return false, next.Close() // the main thread has ended; the others still have their events
	}
	if err != nil {
		s.log("records of mappings and names come from all processes: %v", err)
		if next, err = subscribeMachine(s.CPUs, s.Rings); err != nil {
			return true, err
		}
	}
	before := s.Subscription
	s.Subscription = next
	return true, before.Close()
}

// Close ends the subscription and frees the buffers.
func (s *Sideband) Close() error {
	var all []error
	if s.Subscription != nil {
		all = append(all, s.Subscription.Close())
	}
	for _, r := range s.Rings {
		all = append(all, r.Close())
	}
	s.Rings, s.Subscription = nil, nil
	return errors.Join(all...)
}

// Poll appends the records of the traced process to to, and notes whether records were
// dropped.
func (s *Sideband) Poll(to []Side) []Side {
	var rec ring.Record
	now := Clock()
	for i, r := range s.Rings {
		r.Begin()
		s.Dropped = s.Dropped || r.Tight(largestSide)
		for r.Next(&rec) {
			if rec.Type == unix.PERF_RECORD_LOST {
				s.Dropped, s.certain = true, true
			} else if x, ok := s.parse(&rec); ok && !s.last[i].repeats(&rec) {
				to = append(to, x)
			}
		}
		r.Release()
	}
	if !s.Dropped {
		s.whole = [3]uint64{s.whole[1], s.whole[2], now}
	}
	return to
}

// Since returns a time up to which all records were received.
func (s *Sideband) Since() uint64 { return s.whole[0] }

// Doubt returns why records may be missing.
func (s *Sideband) Doubt() Doubt {
	switch {
	case !s.PerTask():
		return DoubtOthers
	case s.certain:
		return DoubtDropped
	}
	return DoubtTight
}

// Settled records that the dropped records have been handled.
func (s *Sideband) Settled() { s.Dropped, s.certain = false, false }

// repeats reports whether rec has the same contents as the record before it. A thread
// that was subscribed to twice has two events with different IDs, and the kernel writes
// their records one after the other.
func (l *lastRecord) repeats(rec *ring.Record) bool {
	id := binary.NativeEndian.Uint64(rec.Body[len(rec.Body)-sampleIDLen+16:])
	content := rec.Body[:len(rec.Body)-sampleIDLen]
	if rec.Type == l.record.Type && rec.Misc == l.record.Misc && id != l.id && bytes.Equal(content, l.record.Body) {
		return true
	}
	l.id = id
	l.record = ring.Record{Type: rec.Type, Misc: rec.Misc, Body: append(l.record.Body[:0], content...)}
	return false
}

// parse makes a side from a record, and reports whether it is about the traced process.
func (s *Sideband) parse(rec *ring.Record) (Side, bool) {
	b := rec.Body
	if len(b) < 8+sampleIDLen {
		return Side{}, false
	}
	word, long := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	id := b[len(b)-sampleIDLen:]
	x := Side{PID: word(b), TID: word(b[4:]), Time: long(id[8:])}
	switch rec.Type {
	case unix.PERF_RECORD_FORK, unix.PERF_RECORD_EXIT:
		return s.parseTask(rec, x)
	case unix.PERF_RECORD_MMAP2:
		if len(b) < mmap2Fixed+sampleIDLen || word(b[56:])&unix.PROT_EXEC == 0 {
			return Side{}, false
		}
		x.Kind = SideMap
		x.Mapping = process.Mapping{
			Start: long(b[8:]), End: long(b[8:]) + long(b[16:]), Offset: long(b[24:]),
			Major: word(b[32:]), Minor: word(b[36:]), Inode: long(b[40:]),
			Path: text(b[mmap2Fixed : len(b)-sampleIDLen]),
		}
		if m := &x.Mapping; m.Inode == 0 && m.Major == 0 && m.Minor == 0 {
			m.Offset = 0 // for memory without a file this is the address; in /proc/PID/maps it is 0
		}
	case unix.PERF_RECORD_COMM:
		x.Kind = SideName
		if rec.Misc&commExec != 0 {
			x.Kind = SideExec
		}
		x.Name = text(b[8 : len(b)-sampleIDLen])
	default:
		return Side{}, false
	}
	return x, x.PID == s.PID
}

// parseTask is parse for the records of new and ended threads, which contain the process,
// its parent process, the thread, its parent thread and the time.
func (s *Sideband) parseTask(rec *ring.Record, x Side) (Side, bool) {
	word := binary.NativeEndian.Uint32
	if len(rec.Body) < 24+sampleIDLen {
		return Side{}, false
	}
	process, parent, tid, by := word(rec.Body), word(rec.Body[4:]), word(rec.Body[8:]), word(rec.Body[12:])
	switch {
	case rec.Type == unix.PERF_RECORD_EXIT:
		x.Kind, x.TID = SideExit, tid
		return x, process == s.PID
	case process == s.PID:
		x.Kind, x.TID, x.Parent = SideThread, tid, by
		return x, true
	}
	x.Kind, x.PID, x.TID = SideFork, parent, process
	return x, parent == s.PID
}

// text returns a copy of the string up to the first NUL.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
