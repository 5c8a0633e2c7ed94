package main

import (
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/linux/machine"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// resident follows how much memory of the process is resident, for the trace and the
// summary. While the trace goes on it looks about once a second, since the memory of a
// process that has ended is gone.
type resident struct {
	gauge   *machine.Gauge // nil if the process has ended
	account rss.Account    // of the records of the trace
	bytes   uint64         // as it was read last
	time    int64          // when, CLOCK_MONOTONIC
	fresh   bool           // that is not in the trace
	ended   bool           // the trace has its last value
}

// openResident reads for the first time. It is called right before the probes go in.
func (x *session) openResident() {
	x.resident = new(resident)
	x.resident.gauge, _ = machine.NewGauge(x.pid) // of a process that has ended nothing is known
	x.resident.read()
}

// read looks at the process. What cannot be read leaves what was read last.
func (m *resident) read() {
	if m == nil || m.gauge == nil {
		return
	}
	n, err := m.gauge.Resident()
	if err != nil {
		return
	}
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail with these arguments
	m.bytes, m.time, m.fresh = n, now.Nano(), true
}

// cpu returns the processor time that the process has used; 0 if it has ended.
func (m *resident) cpu() time.Duration {
	if m == nil || m.gauge == nil {
		return 0
	}
	t, _ := m.gauge.CPU()
	return t
}

// close lets go of the process.
func (m *resident) close() {
	if m != nil {
		m.gauge.Close()
		m.gauge = nil
	}
}

// residentBefore writes the last value before the record that ends the trace.
func (x *session) residentBefore(rec *trace.Record) error {
	m := x.resident
	if m == nil || m.ended || rec.Kind != trace.KindEnd && (rec.Kind != trace.KindExit || !rec.Exit.Process) {
		return nil
	}
	m.ended = true
	m.read()
	return x.putResident(min(m.time, rec.Time))
}

// residentAfter writes the first value of a program after the record that begins it.
func (x *session) residentAfter(rec *trace.Record) error {
	m := x.resident
	if m == nil || m.ended {
		return nil
	}
	switch rec.Kind {
	case trace.KindExec:
		m.fresh = false // what was read before is of the old program
		m.read()
	case trace.KindProcess:
	default:
		return nil
	}
	return x.putResident(rec.Time)
}

// putResident writes what was read last, unless the trace has it.
func (x *session) putResident(time int64) error {
	m := x.resident
	if !m.fresh {
		return nil
	}
	m.fresh = false
	return x.put(&trace.Record{Kind: trace.KindRSS, Time: time, PID: int32(x.pid), RSS: trace.RSS{Bytes: m.bytes}})
}

// residentSummary prints how the memory grew, and the verdict if it grew elsewhere than
// in blocks.
func (x *session) residentSummary(w io.Writer, stats *tracer.Stats) {
	if x.resident == nil {
		return
	}
	g := x.resident.account.Growth(rss.Live{
		Blocks: uint64(stats.LiveBlocks), Bytes: stats.LiveBytes,
		UnknownBlocks: uint64(stats.UnknownBlocks), UnknownBytes: stats.UnknownBytes,
	})
	if g == nil {
		return
	}
	if g.Elsewhere && !x.config.noLive {
		fmt.Fprintf(w, "  %s\n", g.Verdict)
	}
	fmt.Fprintf(w, "  RSS: %s at the start, %s at the end\n", size(g.Start), size(g.End))
}
