package tracer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/ring"
)

// sidebandDrops counts the sideband records that found no room. The kernel tells of
// them in a record before the next one that finds room, so what is lost at the end of
// a trace it never tells. Since Linux 6.0 it can be asked.
type sidebandDrops struct {
	onlyTold bool   // kernel before 6.0: what its records say is all that is known
	before   uint64 // what was asked for already
	some     bool   // there are some that were not asked for
}

// open opens a sideband event on cpu that can be asked, if the kernel has such ones.
func (d *sidebandDrops) open(attr *unix.PerfEventAttr, cpu, size int) (*ring.Perf, error) {
	attr.Read_format = unix.PERF_FORMAT_LOST
	r, err := ring.NewPerf(attr, -1, cpu, size)
	if errors.Is(err, unix.EINVAL) {
		attr.Read_format, d.onlyTold = 0, true
		r, err = ring.NewPerf(attr, -1, cpu, size)
	}
	return r, err
}

// told returns how much of what a record of the kernel's tells is to be counted.
func (d *sidebandDrops) told(n uint64) uint64 {
	if d.onlyTold {
		return n
	}
	d.some = true
	return 0
}

// dropped asks for the records that were lost since the last time. That interrupts
// every CPU, so it does so where there are some, and at the end.
func (s *sideband) dropped(ending bool) (uint64, error) {
	if s.drops.onlyTold || (!s.drops.some && !ending) {
		return 0, nil
	}
	s.drops.some = false
	var now uint64
	for _, r := range s.rings {
		var b [16]byte // the event's value and the number of its lost records
		if n, err := unix.Read(r.FD(), b[:]); err != nil || n != len(b) {
			return 0, fmt.Errorf("ask for lost records of mappings and names: %d bytes, %w", n, err)
		}
		now += binary.NativeEndian.Uint64(b[8:])
	}
	grown := now - s.drops.before
	s.drops.before = now
	return grown, nil
}
