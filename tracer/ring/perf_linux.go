package ring

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Perf is one perf event with its buffer.
type Perf struct {
	fd      int
	memory  []byte
	head    *atomic.Uint64
	tail    *atomic.Uint64
	data    []byte
	mask    uint64
	pos     uint64
	end     uint64
	freed   uint64 // tail before the last Release
	scratch []byte // holds a copy of a record that wraps
}

// Record is a record of a perf event buffer: type and misc of its header and the bytes after the
// header, valid until Release.
type Record struct {
	Type uint32
	Misc uint16
	Body []byte
}

const perfHeadSize = 8

// NewPerf opens a perf event on cpu for process pid (-1: all) with a buffer of size bytes, a
// power of two of at least one page. It wakes a poller when the buffer is half full. The event is
// enabled unless attr disables it.
func NewPerf(attr *unix.PerfEventAttr, pid, cpu, size int) (*Perf, error) {
	attr.Bits |= unix.PerfBitWatermark
	attr.Wakeup = uint32(size / 2)
	fd, err := OpenPerf(attr, pid, cpu)
	if err != nil {
		return nil, err
	}
	page := os.Getpagesize()
	memory, err := unix.Mmap(fd, 0, page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("map %d bytes of perf event buffer: %w", size, err)
	}
	meta := (*unix.PerfEventMmapPage)(unsafe.Pointer(&memory[0]))
	return &Perf{
		fd:     fd,
		memory: memory,
		head:   (*atomic.Uint64)(unsafe.Pointer(&meta.Data_head)),
		tail:   (*atomic.Uint64)(unsafe.Pointer(&meta.Data_tail)),
		data:   memory[page : page+size],
		mask:   uint64(size - 1),
	}, nil
}

// OpenPerf opens a perf event on cpu for the thread or process pid (-1: all) without a buffer,
// and returns its file descriptor.
func OpenPerf(attr *unix.PerfEventAttr, pid, cpu int) (int, error) {
	attr.Size = uint32(unsafe.Sizeof(*attr))
	fd, err := unix.PerfEventOpen(attr, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open perf event on cpu %d: %w", cpu, err)
	}
	return fd, nil
}

// FD returns the event's file descriptor, for polling and for perf event arrays.
func (p *Perf) FD() int { return p.fd }

// Begin reads the kernel's position; Next reads up to there.
func (p *Perf) Begin() { p.end = p.head.Load() }

// Used returns the share of the buffer that was filled at the last Begin.
func (p *Perf) Used() float64 { return float64(p.end-p.pos) / float64(len(p.data)) }

// Next fills rec with the next record and reports whether there was one.
func (p *Perf) Next(rec *Record) bool {
	if p.pos >= p.end {
		return false
	}
	// Headers are aligned to 8 bytes and never wrap.
	head := unsafe.Pointer(&p.data[p.pos&p.mask])
	size := uint64(*(*uint16)(unsafe.Add(head, 6)))
	rec.Type = *(*uint32)(head)
	rec.Misc = *(*uint16)(unsafe.Add(head, 4))
	if size < perfHeadSize || size > p.end-p.pos {
		// The kernel never writes this; end this round instead of looping.
		p.pos = p.end
		return false
	}
	rec.Body = p.bytes(p.pos+perfHeadSize, size-perfHeadSize)
	p.pos += size
	return true
}

func (p *Perf) bytes(pos, size uint64) []byte {
	from := pos & p.mask
	if from+size <= uint64(len(p.data)) {
		return p.data[from : from+size]
	}
	p.scratch = append(p.scratch[:0], p.data[from:]...)
	p.scratch = append(p.scratch, p.data[:size-uint64(len(p.scratch))]...)
	return p.scratch
}

// Tight reports whether a record of size bytes, or a larger one, may have lacked space between
// the Begin before the last one and the last Begin.
func (p *Perf) Tight(size int) bool {
	return p.end-p.freed+uint64(size) > uint64(len(p.data))
}

// Release gives the space of all records read so far back to the kernel.
func (p *Perf) Release() {
	p.freed = p.tail.Load()
	p.tail.Store(p.pos)
}

// Redirect makes the event with file descriptor fd write its records into this buffer. Both must
// have the same CPU and the same clock.
func (p *Perf) Redirect(fd int) error {
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, p.fd); err != nil {
		return fmt.Errorf("redirect perf event: %w", err)
	}
	return nil
}

// Close disables the event and unmaps its buffer.
func (p *Perf) Close() error {
	if err := errors.Join(unix.Munmap(p.memory), unix.Close(p.fd)); err != nil {
		return fmt.Errorf("close perf event: %w", err)
	}
	return nil
}
