package memory

import (
	"time"

	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/linux/machine"
	"rtrace-bpf/trace"
)

// Resident records how much memory of a process is resident: at the beginning and the end
// of the trace, and when the process executes another program.
type Resident struct {
	pid     int32
	gauge   *machine.Gauge // nil if the process has ended
	account rss.Account    // of the records of the trace
	bytes   uint64         // the last value
	time    int64          // of the last value, CLOCK_MONOTONIC in nanoseconds
	fresh   bool           // the trace does not contain the last value
	ended   bool           // the trace contains its last value
}

// OpenResident reads the memory of a process for the first time.
func OpenResident(pid int) *Resident {
	m := &Resident{pid: int32(pid)}
	m.gauge, _ = machine.NewGauge(pid) // a process that has ended has no values
	m.Read()
	return m
}

// Read reads the resident memory. If that fails, the last value remains.
func (m *Resident) Read() {
	if m.gauge == nil {
		return
	}
	n, err := m.gauge.Resident()
	if err != nil {
		return
	}
	m.bytes, m.time, m.fresh = n, now(), true
}

// Bytes returns the last value; 0 if there was none.
func (m *Resident) Bytes() uint64 { return m.bytes }

// CPU returns the processor time that the process has used; 0 if it has ended.
func (m *Resident) CPU() time.Duration {
	if m.gauge == nil {
		return 0
	}
	t, _ := m.gauge.CPU()
	return t
}

// Close releases the process.
func (m *Resident) Close() {
	m.gauge.Close()
	m.gauge = nil
}

// Observe adds a record of the trace to the account of its memory.
func (m *Resident) Observe(r *trace.Record) { m.account.Add(r) }

// Growth returns how the memory has grown during the trace, nil if that is not known.
func (m *Resident) Growth(live rss.Live) *rss.Growth { return m.account.Growth(live) }

// Before passes the last value to put, before the record that ends the trace.
func (m *Resident) Before(rec *trace.Record, put func(*trace.Record) error) error {
	if m.ended || !last(rec) {
		return nil
	}
	m.ended = true
	m.Read()
	return m.put(min(m.time, rec.Time), put)
}

// After passes the first value of a program to put, after the record that begins it.
func (m *Resident) After(rec *trace.Record, put func(*trace.Record) error) error {
	if m.ended {
		return nil
	}
	switch rec.Kind {
	case trace.KindExec:
		m.fresh = false // the last value is that of the old program
		m.Read()
	case trace.KindProcess:
	default:
		return nil
	}
	return m.put(rec.Time, put)
}

// put writes the last value, unless the trace contains it.
func (m *Resident) put(time int64, put func(*trace.Record) error) error {
	if !m.fresh {
		return nil
	}
	m.fresh = false
	return put(&trace.Record{Kind: trace.KindRSS, Time: time, PID: m.pid, RSS: trace.RSS{Bytes: m.bytes}})
}
