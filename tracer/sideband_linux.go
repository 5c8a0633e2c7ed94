package tracer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/tracer/ring"
)

// clockSlack is how much later than its time stamp a perf record may show up:
// its time is read before its place is reserved, with preemption off.
const clockSlack = 2_000_000

// sideKind says what a side describes.
type sideKind uint8

const (
	sideMap      sideKind = iota // an executable mapping appeared
	sideName                     // a thread changed its name
	sideExec                     // the process replaced its program; name is the new one
	sideExit                     // a thread ended
	sideFork                     // the process made another one, whose id is tid
	sideSnapshot                 // the process's mappings were read anew
	sideTables                   // the unwind tables of snapshot are in the kernel
	sideLost                     // the kernel dropped sideband records
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
	name     string // of a thread, program or mark, or path of a mapping
	mapping  mapping
	snapshot []mapping
	seen     uint64 // when reading the snapshot, or the pause, began
	lost     uint64
	reason   Loss
	work     Work
	number   uint64 // of a sideMap or sideExec, as they arrived; sideTables: the last one that was heeded
}

// mapping is an executable mapping as the kernel names it.
type mapping struct {
	start, end   uint64
	offset       uint64
	major, minor uint32
	inode        uint64
	path         string
	deleted      bool
	seen         uint64 // when it was first seen to be there
}

// bias returns what was added to the addresses of its file, which has these segments.
func (m *mapping) bias(segments []symbol.Segment) uint64 {
	return symbol.Bias(segments, m.start, m.end, m.offset)
}

// Layout of perf records (include/uapi/linux/perf_event.h), behind the head.
const (
	mmap2Fixed  = 64      // pid, tid, addr, len, pgoff, maj, min, ino, ino_generation, prot, flags
	sampleIDLen = 24      // pid, tid, time, cpu, reserved: see sidebandAttr
	commExec    = 1 << 13 // PERF_RECORD_MISC_COMM_EXEC
)

// sidebandAttr asks for records about executable mappings, names, forks and
// exits, stamped with CLOCK_MONOTONIC as the events are.
func sidebandAttr() *unix.PerfEventAttr {
	return &unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_DUMMY,
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CPU,
		Bits: unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitComm | unix.PerfBitCommExec |
			unix.PerfBitTask | unix.PerfBitSampleIDAll | unix.PerfBitUseClockID,
		Clockid: unix.CLOCK_MONOTONIC,
	}
}

// sideband reads the kernel's records about the traced process. One event per
// CPU sees every process, since an inherited per-process event misses threads
// (decision 17); others are skipped by their process id.
type sideband struct {
	pid   uint32
	rings []*ring.Perf
	drops sidebandDrops
}

func openSideband(pid int, cpus []int, size int) (*sideband, error) {
	s := &sideband{pid: uint32(pid)}
	for _, cpu := range cpus {
		r, err := s.drops.open(sidebandAttr(), cpu, size)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("watch mappings: %w", perfRefused(err)), s.Close())
		}
		s.rings = append(s.rings, r)
	}
	return s, nil
}

func (s *sideband) Close() error {
	var all []error
	for _, r := range s.rings {
		all = append(all, r.Close())
	}
	s.rings = nil
	return errors.Join(all...)
}

// poll appends the records of the traced process to to.
func (s *sideband) poll(to []side) []side {
	var rec ring.Record
	for _, r := range s.rings {
		r.Begin()
		for r.Next(&rec) {
			if x, ok := s.parse(&rec); ok {
				to = append(to, x)
			}
		}
		r.Release()
	}
	return to
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
	if rec.Type == unix.PERF_RECORD_LOST {
		x.kind, x.lost = sideLost, s.drops.told(long(b[8:]))
		x.pid, x.tid = s.pid, 0
		return x, true
	}
	if rec.Type == unix.PERF_RECORD_FORK {
		// pid, parent's pid, tid, parent's tid, time
		x.kind, x.pid, x.tid = sideFork, word(b[4:]), word(b)
		return x, x.pid == s.pid && x.tid != s.pid
	}
	if x.pid != s.pid {
		return side{}, false
	}
	switch rec.Type {
	case unix.PERF_RECORD_MMAP2:
		if len(b) < mmap2Fixed+sampleIDLen {
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
		if word(b[56:])&unix.PROT_EXEC == 0 {
			return side{}, false
		}
	case unix.PERF_RECORD_COMM:
		x.kind = sideName
		if rec.Misc&commExec != 0 {
			x.kind = sideExec
		}
		x.name = text(b[8 : len(b)-sampleIDLen])
	case unix.PERF_RECORD_EXIT:
		x.kind = sideExit
		x.tid = word(b[8:])
	default:
		return side{}, false
	}
	return x, true
}

// text returns the string up to the first NUL, as a copy.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// onlineCPUs returns the numbers of the CPUs that are up.
func onlineCPUs() ([]int, error) {
	b, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("list cpus: %w", err)
	}
	return parseCPUList(strings.TrimSpace(string(b)))
}

// parseCPUList reads the kernel's list form "0-3,8".
func parseCPUList(list string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("list cpus: parse %q: %w", list, err)
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("list cpus: parse %q: %w", list, err)
			}
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}
