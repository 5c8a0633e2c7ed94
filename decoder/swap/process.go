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
	d.queue = append(d.queue, trace.Record{Kind: trace.KindMapping, Time: d.msg.Nanoseconds(), PID: pid})
	d.mapping(&d.queue[len(d.queue)-1], low, high, path)
}

// mapping sets a mapping. Its low bound is the address of the file's offset 0.
func (d *Reader) mapping(rec *trace.Record, low, high uint64, path string) {
	rec.Mapping = trace.Mapping{Start: low, End: high, Base: low, Path: path}
	if len(d.mapped) < maxMapped {
		d.mapped[mapping{rec.PID, low, high}] = path
	}
}

func (d *Reader) unmapping(rec *trace.Record) {
	d.start(rec, trace.KindUnmapping)
	v := d.fields.Values
	rec.PID = int32(v[0].Num)
	key := mapping{rec.PID, v[1].Num, v[2].Num}
	rec.Mapping = trace.Mapping{Start: key.low, End: key.high, Path: d.mapped[key]}
	delete(d.mapped, key)
}
