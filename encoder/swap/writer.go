package swap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Writer is a trace.Writer. Each Write on the underlying writer ends after a whole
// message.
type Writer struct {
	stream
	opts      Options
	clock     clock
	resources resources
	process   pending
	mapped    map[place]uint64 // low bounds that were written
	apis      apis
	sockets   map[descriptor]bool // those that are open
	stats     Stats
}

var _ trace.Writer = (*Writer)(nil)

// New returns a Writer to w.
func New(w io.Writer, opts Options) (*Writer, error) {
	if w == nil {
		return nil, errors.New("swap: no writer given")
	}
	if opts.Dialect > Kernel {
		return nil, fmt.Errorf("swap: unknown dialect %d", opts.Dialect)
	}
	return &Writer{
		stream: stream{out: binio.NewOutput(w, "swap", wire.MaxPayload), formula: opts.Formula},
		opts:   opts, apis: newAPIs(), mapped: map[place]uint64{}, sockets: map[descriptor]bool{},
	}, nil
}

// Stats returns the counters so far.
func (m *Writer) Stats() Stats {
	s := m.stats
	s.Long = m.long
	return s
}

// Version is the version of the protocol that is written.
const Version = wire.Protocol

// APIs returns the names of the functions of probe messages by their numbers: the known
// ones and those in the trace. The caller owns the map.
func (m *Writer) APIs() map[uint32]string { return m.apis.names() }

// Start returns the time of the first message in ns since 1970, or 0.
func (m *Writer) Start() int64 { return m.first }

// WriteRecord implements trace.Writer.
func (m *Writer) WriteRecord(r *trace.Record) error {
	if err := m.out.Err(); err != nil {
		return err
	}
	if m.process.open && !m.process.continues(r) {
		m.endProcess()
	}
	switch r.Kind {
	case trace.KindHeader:
		m.clock.header(&r.Header)
		m.ends, m.announced = r.Header.Ends, false
		m.resources.reset()
	case trace.KindProcess:
		m.beginProcess(r)
	case trace.KindResource:
		m.resources.add(&r.Resource)
	case trace.KindMapping:
		m.mapping(r)
	case trace.KindUnmapping:
		m.unmapping(r)
	case trace.KindCall:
		m.call(r)
	case trace.KindThread:
		m.thread(r)
	case trace.KindExec:
		m.comm(r.PID, r.Time, r.Exec.Name)
	case trace.KindExit:
		if r.Exit.Process {
			m.begin(wire.Terminate, r.Time)
			m.u32(uint32(r.PID))
			m.end()
		}
	case trace.KindComment:
		m.begin(wire.Error, r.Time)
		m.text(r.Comment)
		m.end()
	case trace.KindLost:
		m.lost(r)
	case trace.KindEnd:
		if m.ends {
			m.begin(wire.End, r.Time)
			m.u32(1)
			m.end()
		}
	case trace.KindOpaque:
		if r.Opaque.Format == wire.Format {
			m.opaque(r)
		}
	}
	return m.out.Pass()
}

// lost skips sequence numbers and writes a message with the reason. Readers take
// missing numbers before the first message for an earlier part of the stream, not for a
// loss.
func (m *Writer) lost(r *trace.Record) {
	n := r.Lost.Count
	switch {
	case m.first == 0:
		m.stats.CutGaps++
		n = 0
	case n > wire.MaxGap-m.gap:
		n = wire.MaxGap - m.gap
		m.stats.CutGaps++
	}
	m.gap += n
	m.seq += uint32(n)
	if r.Lost.Reason == "" || r.Lost.Reason == wire.GapReason {
		return
	}
	m.begin(wire.Error, r.Time)
	m.text(wire.LostPrefix + strconv.FormatUint(r.Lost.Count, 10) + ": " + r.Lost.Reason)
	m.end()
}

// opaque writes a message unchanged, except for its number and the order of its times.
// It drops a stack whose message is not in the trace: the stack names that message by a
// number that now belongs to another one.
func (m *Writer) opaque(r *trace.Record) {
	o := &r.Opaque
	if o.ID == wire.Stack && len(o.Data) >= 8 && uint64(len(o.Data)) == 8+8*uint64(binary.LittleEndian.Uint32(o.Data[4:])) {
		m.stats.Strays++
		return
	}
	m.begin(o.ID, r.Time)
	m.out.Buf = append(m.out.Buf, o.Data...)
	if data := m.out.Buf[m.at+wire.HeaderSize:]; m.opts.Formula && o.ID == wire.AppSetupStage && len(data) == 24 {
		for _, t := range [][]byte{data[8:16], data[16:24]} {
			v := binary.LittleEndian.Uint64(t)
			binary.LittleEndian.PutUint64(t, v<<32|v>>32)
		}
	}
	m.end()
}

// begin begins a message with a time of the trace.
func (m *Writer) begin(id uint32, now int64) { m.beginAt(id, m.clock.wall(now)) }

// Flush implements trace.Writer.
func (m *Writer) Flush() error {
	if m.out.Err() == nil && m.process.open {
		m.endProcess()
	}
	return m.out.Flush()
}

// Close implements trace.Writer.
func (m *Writer) Close() error {
	_ = m.Flush() // out.Close returns its error
	return m.out.Close()
}
