package swap

import (
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// process delivers a process and queues its mappings.
func (d *Reader) process(rec *trace.Record) {
	d.start(rec, trace.KindProcess)
	v := d.fields.Values
	rec.PID = int32(v[0].Num)
	rec.Process = trace.Process{
		Name: string(v[1].Text), Depth: -1, Parent: int32(v[2].Num), WallTime: rec.Time,
		Started: int64(v[3].Num)*1e9 + int64(v[3].Nanos), Path: string(v[6].Text),
	}
	low, high := v[4].Num, v[5].Num
	if rec.Process.Path == wire.NoPath {
		rec.Process.Path = ""
	}
	if high != 0 {
		d.queueMapping(rec.PID, low, high, rec.Process.Path)
	}
	for list := v[8:]; len(list) >= 3; list = list[3:] {
		d.queueMapping(rec.PID, list[0].Num, list[1].Num, string(list[2].Text))
	}
}

func (d *Reader) queueMapping(pid int32, low, high uint64, path string) {
	*d.queue.add() = trace.Record{Kind: trace.KindMapping, Time: d.msg.Nanoseconds(), PID: pid, Mapping: d.mapped.add(pid, low, high, path)}
}

func (d *Reader) unmapping(rec *trace.Record) {
	d.start(rec, trace.KindUnmapping)
	v := d.fields.Values
	rec.PID = int32(v[0].Num)
	rec.Mapping = d.mapped.remove(rec.PID, v[1].Num, v[2].Num)
}

// mapping is what identifies a mapping in an unmapping.
type mapping struct {
	pid  int32
	low  uint64
	high uint64
}

// mappings holds the paths of mappings, which unmappings do not contain.
type mappings map[mapping]string

// maxMapped bounds how many paths of mappings, and names of functions, are remembered.
const maxMapped = 1 << 16

// add returns a mapping and remembers its path. Its low bound is the address of the
// file's offset 0.
func (m mappings) add(pid int32, low, high uint64, path string) trace.Mapping {
	if len(m) < maxMapped {
		m[mapping{pid, low, high}] = path
	}
	return trace.Mapping{Start: low, End: high, Base: low, Path: path}
}

// remove returns a mapping that has ended.
func (m mappings) remove(pid int32, low, high uint64) trace.Mapping {
	key := mapping{pid, low, high}
	path := m[key]
	delete(m, key)
	return trace.Mapping{Start: low, End: high, Path: path}
}
