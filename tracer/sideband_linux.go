package tracer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/tracer/ring"
)

// clockSlack is how much later than its time stamp a perf record may show up:
// its time is read before its place is reserved, with preemption off.
const clockSlack = 2_000_000

// sideKind says what a side describes.
type sideKind uint8

// The kinds of sides.
const (
	sideMap      sideKind = iota // an executable mapping appeared
	sideName                     // a thread changed its name
	sideExec                     // the process replaced its program; name is the new one
	sideExit                     // a thread ended
	sideFork                     // the process made another one, whose id is tid
	sideThread                   // thread parent made thread tid
	sideSnapshot                 // the process's mappings were read anew
	sideTables                   // the unwind tables of snapshot are in the kernel
	sideAudit                    // the kernel dropped sideband records after since; snapshot and threads were read anew
	sideDrops                    // loss counters grew
	sideWork                     // the work that unwinding took up to now
	sidePause                    // nothing was recorded between seen and time
	sideMark                     // the user has set the mark name
)

// side is a rare record of a process, beside the stream of events.
type side struct {
	kind     sideKind
	time     uint64
	pid, tid uint32
	parent   uint32 // of a sideThread
	name     string // of a thread, program or mark, or path of a mapping
	mapping  mapping
	snapshot []mapping
	threads  []proc.Thread
	since    uint64 // a sideAudit: everything up to then was received
	seen     uint64 // when reading the snapshot, or the pause, began
	lost     uint64
	reason   Loss
	work     Work
	number   uint64 // of a sideMap or sideExec, as they arrived; sideTables: the last one that was heeded
}

// Layout of perf records (include/uapi/linux/perf_event.h), after the head.
const (
	mmap2Fixed  = 64      // pid, tid, addr, len, pgoff, maj, min, ino, ino_generation, prot, flags
	sampleIDLen = 32      // pid, tid, time, id, cpu, reserved: see sidebandAttr
	commExec    = 1 << 13 // PERF_RECORD_MISC_COMM_EXEC
	largestSide = 5 << 10 // bytes of the largest record, one with a path of PATH_MAX
)

// sidebandAttr describes an event without records of its own, stamped with
// CLOCK_MONOTONIC as the events of the programs are.
func sidebandAttr() *unix.PerfEventAttr {
	return &unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_DUMMY,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_ID | unix.PERF_SAMPLE_CPU,
		Bits:        unix.PerfBitSampleIDAll | unix.PerfBitUseClockID,
		Clockid:     unix.CLOCK_MONOTONIC,
	}
}

// sideband reads the kernel's records about the traced process. There is a buffer for
// each CPU; which processes the records in it are about is up to the subscription.
type sideband struct {
	pid          uint32
	cpus         []int
	rings        []*ring.Perf
	last         []lastRecord // by ring
	subscription *subscription
	way          Sideband
	limit        int       // most events of a subscription to single threads
	whole        [3]uint64 // times of the last polls; up to the oldest one nothing was dropped
	dropped      bool      // records were, or may have been, dropped since then
	certain      bool      // the kernel said so
	log          func(format string, args ...any)
}

// lastRecord is the last record of a ring that was not a repetition.
type lastRecord struct {
	id     uint64 // of the event that it came from
	record ring.Record
}

// openSideband makes the buffers and subscribes to the records of the plan's process.
func openSideband(p *Plan, cpus []int) (*sideband, error) {
	o := &p.options
	s := &sideband{
		pid: uint32(p.target.pid), cpus: cpus, last: make([]lastRecord, len(cpus)),
		limit: o.subscriptionLimit(), log: o.logf, way: o.Sideband,
	}
	for i := range s.whole {
		s.whole[i] = clock()
	}
	for _, cpu := range cpus {
		r, err := ring.NewPerf(sidebandAttr(), -1, cpu, o.sidebandBytes())
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch mappings: %w", perfRefused(err)), s.Close())
		}
		s.rings = append(s.rings, r)
	}
	way := o.Sideband
	if way == SidebandAuto && len(cpus) > mostTaskCPUs {
		way = SidebandMachine
	}
	if err := s.subscribe(way); err != nil {
		return nil, errors.Join(fmt.Errorf("watch mappings: %w", perfRefused(err)), s.Close())
	}
	return s, nil
}

// subscribe begins to receive records, in place of what was received before. Records
// of what goes on meanwhile may come twice, but none is missing for that.
func (s *sideband) subscribe(way Sideband) error {
	var next *subscription
	var err error
	if way != SidebandMachine {
		next, err = subscribeThreads(int(s.pid), s.cpus, s.rings, s.limit)
		if err != nil && way == SidebandTask {
			return err
		}
		if err != nil {
			s.log("records of mappings and names come from all processes: %v", err)
		}
	}
	if next == nil {
		if next, err = subscribeMachine(s.cpus, s.rings); err != nil {
			return err
		}
	}
	before := s.subscription
	s.subscription = next
	if before != nil {
		return before.Close()
	}
	return nil
}

// narrow leaves other processes out of the buffers once these have been too small for
// all, if the process has not too many threads.
func (s *sideband) narrow() {
	if s.way != SidebandAuto || s.perTask() {
		return
	}
	s.way = SidebandMachine // it is tried once
	if err := s.subscribe(SidebandTask); err != nil {
		s.log("records of mappings and names still come from all processes: %v", err)
	}
}

// perTask reports whether other processes have no part in the buffers.
func (s *sideband) perTask() bool { return s.subscription != nil && s.subscription.perTask }

// renew subscribes anew if the kernel has taken the events away from a process that
// goes on, as it does when that executes a set-user-ID program. It reports whether
// the process goes on.
func (s *sideband) renew() (bool, error) {
	if !s.perTask() {
		return false, nil
	}
	next, err := subscribeThreads(int(s.pid), s.cpus, s.rings, s.limit)
	if err == nil && !next.leader {
		return false, next.Close() // it has ended, and the others have their events
	}
	if err != nil {
		s.log("records of mappings and names come from all processes: %v", err)
		if next, err = subscribeMachine(s.cpus, s.rings); err != nil {
			return true, err
		}
	}
	before := s.subscription
	s.subscription = next
	return true, before.Close()
}

// Close ends the subscription and frees the buffers.
func (s *sideband) Close() error {
	var all []error
	if s.subscription != nil {
		all = append(all, s.subscription.Close())
	}
	for _, r := range s.rings {
		all = append(all, r.Close())
	}
	s.rings, s.subscription = nil, nil
	return errors.Join(all...)
}

// poll appends the records of the traced process to to, and notes whether some were
// dropped.
func (s *sideband) poll(to []side) []side {
	var rec ring.Record
	now := clock()
	for i, r := range s.rings {
		r.Begin()
		s.dropped = s.dropped || r.Tight(largestSide)
		for r.Next(&rec) {
			if rec.Type == unix.PERF_RECORD_LOST {
				s.dropped, s.certain = true, true
			} else if x, ok := s.parse(&rec); ok && !s.last[i].repeats(&rec) {
				to = append(to, x)
			}
		}
		r.Release()
	}
	if !s.dropped {
		s.whole = [3]uint64{s.whole[1], s.whole[2], now}
	}
	return to
}

// since returns a time up to which all records were received.
func (s *sideband) since() uint64 { return s.whole[0] }

// doubt says what the records that may have been dropped were among.
func (s *sideband) doubt() doubt {
	switch {
	case !s.perTask():
		return doubtOthers
	case s.certain:
		return doubtDropped
	}
	return doubtTight
}

// settled says that what was dropped has been looked after.
func (s *sideband) settled() { s.dropped, s.certain = false, false }

// repeats reports whether rec says once more what the record before it said: a thread
// that was subscribed to twice has two events, which have different ids and speak one
// after the other.
func (l *lastRecord) repeats(rec *ring.Record) bool {
	id := binary.NativeEndian.Uint64(rec.Body[len(rec.Body)-sampleIDLen+16:])
	said := rec.Body[:len(rec.Body)-sampleIDLen]
	if rec.Type == l.record.Type && rec.Misc == l.record.Misc && id != l.id && bytes.Equal(said, l.record.Body) {
		return true
	}
	l.id = id
	l.record = ring.Record{Type: rec.Type, Misc: rec.Misc, Body: append(l.record.Body[:0], said...)}
	return false
}

// parse turns a record of the traced process into a side.
func (s *sideband) parse(rec *ring.Record) (side, bool) {
	b := rec.Body
	if len(b) < 8+sampleIDLen {
		return side{}, false
	}
	word, long := binary.NativeEndian.Uint32, binary.NativeEndian.Uint64
	id := b[len(b)-sampleIDLen:]
	x := side{pid: word(b), tid: word(b[4:]), time: long(id[8:])}
	switch rec.Type {
	case unix.PERF_RECORD_FORK, unix.PERF_RECORD_EXIT:
		return s.parseTask(rec, x)
	case unix.PERF_RECORD_MMAP2:
		if len(b) < mmap2Fixed+sampleIDLen || word(b[56:])&unix.PROT_EXEC == 0 {
			return side{}, false
		}
		x.kind = sideMap
		x.mapping = mapping{
			start: long(b[8:]), end: long(b[8:]) + long(b[16:]), offset: long(b[24:]),
			major: word(b[32:]), minor: word(b[36:]), inode: long(b[40:]),
			path: text(b[mmap2Fixed : len(b)-sampleIDLen]),
		}
		if m := &x.mapping; m.inode == 0 && m.major == 0 && m.minor == 0 {
			m.offset = 0 // of memory without a file it is the address here, and nothing in maps
		}
	case unix.PERF_RECORD_COMM:
		x.kind = sideName
		if rec.Misc&commExec != 0 {
			x.kind = sideExec
		}
		x.name = text(b[8 : len(b)-sampleIDLen])
	default:
		return side{}, false
	}
	return x, x.pid == s.pid
}

// parseTask is parse for the beginning and the end of a thread, whose records hold its
// process, its parent's, itself, its parent and the time.
func (s *sideband) parseTask(rec *ring.Record, x side) (side, bool) {
	word := binary.NativeEndian.Uint32
	if len(rec.Body) < 24+sampleIDLen {
		return side{}, false
	}
	process, parent, tid, by := word(rec.Body), word(rec.Body[4:]), word(rec.Body[8:]), word(rec.Body[12:])
	switch {
	case rec.Type == unix.PERF_RECORD_EXIT:
		x.kind, x.tid = sideExit, tid
		return x, process == s.pid
	case process == s.pid:
		x.kind, x.tid, x.parent = sideThread, tid, by
		return x, true
	}
	x.kind, x.pid, x.tid = sideFork, parent, process
	return x, parent == s.pid
}

// text returns the string up to the first NUL, as a copy.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
