package order

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/mapofmaps"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/ring"
)

// queueLimit is how many events of one ring wait in user memory at most; the others stay
// in the ring.
const queueLimit = 64 << 10

// Source is one CPU's ring of the BPF programs.
type Source interface {
	// Poll moves the complete records into to. now was read from the clock just before.
	// No event with a time before the returned bound can come later.
	Poll(now uint64, to *Intake) (bound uint64)
	Used() float64 // share of the ring that was full at the last Poll, from 0 to 1
	FD() int
	Close() error
}

// Intake is where sources put what they read.
type Intake struct {
	Queue   *Queue
	Machine *process.Machine // decodes the registers of raw stacks
	cpu     uint16
	Stacks  []StackDef
	Raws    []RawStack
	rawID   uint64 // number of the last raw stack
	Maps    bool   // the dynamic loader changed the mappings

	Number     uint16 // number of the source
	Activities []NumberedActivity
	activityID uint64 // number of the last activity
	Calls      []NumberedCall
	callID     uint64 // number of the last call
}

func (in *Intake) add(record []byte) {
	if isStack(record) {
		var s StackDef
		if decodeStack(record, &s) {
			in.Stacks = append(in.Stacks, s)
		}
		return
	}
	e := in.Queue.slot()
	e.CPU = in.cpu
	if isRaw(record) {
		in.addRaw(record, e)
		return
	}
	switch {
	case !decode(record, e):
		in.Queue.drop()
	case e.Kind == kindMaps:
		in.Maps = true
		in.Queue.drop()
	default:
		in.Queue.settle()
	}
}

// addRaw keeps a raw stack and makes e the event that refers to it by number.
func (in *Intake) addRaw(record []byte, e *Event) {
	in.rawID++
	s := RawStack{ID: uint64(in.cpu)<<48 | in.rawID}
	if !decodeRaw(record, in.Machine, &s) {
		in.Queue.drop()
		return
	}
	in.Raws = append(in.Raws, s)
	head := (*object.ProbeEvent)(unsafe.Pointer(unsafe.SliceData(record))).Head
	*e = Event{Kind: KindRaw, Time: head.Time, TID: head.Tid, CPU: in.cpu, Addr: s.ID}
	in.Queue.settle()
}

// RingSource reads a BPF ring buffer. The programs read an event's time after they
// reserve its place, so records reserved after a look at the ring have later times than
// that look. A record that is not complete yet keeps the bound at the last look that did
// not see it.
type RingSource struct {
	cpu    uint16
	ebpf   *ebpf.Map
	ring   *ring.BPF
	bound  uint64
	looked uint64 // when Poll last looked at the ring
	end    uint64 // producers' position at that look

	// The owner of the ring. If both are nil, the ring belongs to the programs for
	// allocator calls.
	Activity  *activity.Activity
	Functions *functions.Functions
}

// Poll implements Source.
func (s *RingSource) Poll(now uint64, to *Intake) uint64 {
	to.cpu = s.cpu
	s.ring.Begin()
	room := to.Queue.Room()
	for ; room > 0; room-- {
		record := s.ring.Next()
		if record == nil {
			break
		}
		switch {
		case s.Activity != nil:
			to.addActivity(s.Activity, record, to.Queue.slot())
		case s.Functions != nil:
			to.addCall(s.Functions, record, to.Queue.slot())
		default:
			to.add(record)
		}
	}
	switch {
	case s.ring.Caught():
		s.bound = now
	case room == 0:
		s.bound = to.Queue.Events[len(to.Queue.Events)-1].Time
	case s.ring.Pos() >= s.end:
		s.bound = s.looked
	}
	s.looked, s.end = now, s.ring.End()
	s.ring.Release()
	return s.bound
}

// Used implements Source.
func (s *RingSource) Used() float64 { return s.ring.Used() }

// FD implements Source.
func (s *RingSource) FD() int { return s.ebpf.FD() }

// Close implements Source.
func (s *RingSource) Close() error {
	return errors.Join(s.ring.Close(), s.ebpf.Close())
}

// OpenRings makes a BPF ring buffer for each CPU and installs it in the outer map. size
// is in bytes. The caller must close the sources.
func OpenRings(into *ebpf.Map, cpus []int, size int) (sources []Source, err error) {
	defer func() {
		if err != nil {
			sources, err = nil, errors.Join(err, CloseSources(sources))
		}
	}()
	var slots, fds []uint32
	for _, cpu := range cpus {
		s, err := newRing(cpu, size)
		if err != nil {
			return sources, err
		}
		sources = append(sources, s)
		slots, fds = append(slots, uint32(cpu)), append(fds, uint32(s.FD()))
	}
	if err := mapofmaps.New(into).Update(slots, fds); err != nil {
		return sources, fmt.Errorf("install ring buffers: %w", err)
	}
	return sources, nil
}

func newRing(cpu, size int) (Source, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "ring", Type: ebpf.RingBuf, MaxEntries: uint32(size)})
	if err != nil {
		return nil, ringError(cpu, size, host.Shortage(err))
	}
	r, err := ring.NewBPF(m.FD(), size)
	if err != nil {
		return nil, errors.Join(ringError(cpu, size, err), m.Close())
	}
	return &RingSource{cpu: uint16(cpu), ebpf: m, ring: r}, nil
}

// ErrLargeBuffer reports that a buffer for events is larger than the kernel, its memory
// or the limit on locked memory allows.
var ErrLargeBuffer = errors.New("the buffer is too large")

func ringError(cpu, size int, err error) error {
	if errors.Is(err, unix.EACCES) {
		return fmt.Errorf("make perf buffer on cpu %d: %w", cpu, host.PerfRefused(err))
	}
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("make perf buffer of %d KiB on cpu %d: %w CAP_IPC_LOCK: %w", size>>10, cpu, host.ErrNotPrivileged, ErrLargeBuffer)
	}
	if errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("make ring buffer of %d KiB on cpu %d: no memory: %w", size>>10, cpu, ErrLargeBuffer)
	}
	return fmt.Errorf("make ring buffer of %d KiB on cpu %d: %w", size>>10, cpu, err)
}

// perfSource reads a perf event buffer that the programs write to. They read an event's
// time before its place is reserved, so the bound comes from grace.
type perfSource struct {
	cpu     uint16
	ring    *ring.Perf
	grace   *Grace
	scratch []uint64
}

// perfSlack is how long, in nanoseconds, a program may take from reading the time to
// writing the record before the event counts as late. It applies where grace does not
// know a bound, or the buffer was not read to its end.
const perfSlack = 20_000_000

func (s *perfSource) Poll(now uint64, to *Intake) uint64 {
	var rec ring.Record
	to.cpu = s.cpu
	bound := s.grace.bound(now) // before the look at the ring
	s.ring.Begin()
	for range to.Queue.Room() {
		if !s.ring.Next(&rec) {
			s.ring.Release()
			return bound
		}
		if rec.Type == unix.PERF_RECORD_SAMPLE && len(rec.Body) > 4 {
			to.add(s.aligned(rec.Body[4:]))
		}
	}
	s.ring.Release()
	return min(bound, to.Queue.Events[len(to.Queue.Events)-1].Time-perfSlack)
}

// aligned copies a raw sample, which begins 4 bytes after an aligned address, to where
// its 64-bit fields can be read.
func (s *perfSource) aligned(b []byte) []byte {
	words := (len(b) + 7) / 8
	if len(s.scratch) < words {
		s.scratch = make([]uint64, words)
	}
	to := bytesOf(s.scratch)
	return to[:copy(to, b)]
}

func (s *perfSource) Used() float64 { return s.ring.Used() }
func (s *perfSource) FD() int       { return s.ring.FD() }
func (s *perfSource) Close() error  { return s.ring.Close() }

// OpenPerfRings makes a perf event buffer for each CPU and puts it into array. size is in
// bytes. The caller must close the sources.
func OpenPerfRings(array *ebpf.Map, cpus []int, size int, g *Grace) ([]Source, error) {
	var sources []Source
	for _, cpu := range cpus {
		attr := &unix.PerfEventAttr{
			Type:        unix.PERF_TYPE_SOFTWARE,
			Config:      unix.PERF_COUNT_SW_BPF_OUTPUT,
			Sample_type: unix.PERF_SAMPLE_RAW,
			Sample:      1,
		}
		r, err := ring.NewPerf(attr, -1, cpu, size)
		if err != nil {
			return nil, errors.Join(ringError(cpu, size, err), CloseSources(sources))
		}
		sources = append(sources, &perfSource{cpu: uint16(cpu), ring: r, grace: g})
		if err := array.Put(uint32(cpu), uint32(r.FD())); err != nil {
			return nil, errors.Join(fmt.Errorf("install perf buffer of cpu %d: %w", cpu, err), CloseSources(sources))
		}
	}
	return sources, nil
}

// CloseSources closes all sources and joins their errors.
func CloseSources(sources []Source) error {
	var all []error
	for _, s := range sources {
		all = append(all, s.Close())
	}
	return errors.Join(all...)
}
