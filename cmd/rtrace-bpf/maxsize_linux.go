package main

import (
	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/trace"
)

// leastMaxSize is the smallest limit on the size of a trace.
const leastMaxSize flags.Size = 2 << 20

// sizeReserve is how far below --max-size the recording ends: what the encoder and
// the side file have in memory then comes on top.
const sizeReserve flags.Size = 1 << 20

// written is how many bytes the trace takes on the disk, with what belongs to it, or would
// take if it was not piped elsewhere.
func (x *session) written() int64 {
	if x.postproc != nil {
		return x.postproc.sent
	}
	n := x.out.Size()
	for _, f := range x.attached {
		n += f.Size()
	}
	if x.spooled != nil {
		n += x.spooled.file.Size()
	}
	if x.side != nil {
		n += x.side.Size()
	}
	return n
}

// isFull says whether the trace is as large as --max-size allows.
func (x *session) isFull() bool {
	limit := x.config.maxSize
	return limit > 0 && x.written() >= int64(limit-sizeReserve)
}

// endEarly ends the trace behind its last record.
func (x *session) endEarly(last *trace.Record) error {
	if !x.config.quiet {
		x.status.print("process %d: the trace is as large as --max-size allows, and ends", x.pid)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.write(&trace.Record{Kind: trace.KindEnd, Time: last.Time, PID: int32(x.pid)})
}
