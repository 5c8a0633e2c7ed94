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
	out  binio.Output
	opts Options
	at   int // start of the message that is being written, in out.Buf

	seq       uint32
	gap       uint64 // how many numbers were skipped since the last message
	clock     clock
	resources resources
	process   pending
	mapped    map[place]uint64     // low bounds that were written
	apis      map[string]*wire.API // of the allocator
	others    map[string]*wire.API // all others
	sockets   map[descriptor]bool  // those that are open
	ownAPI    uint32
	stats     Stats
	first     int64 // time of the first message
	ends      bool  // the trace has an End
	announced bool  // its start was announced
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
	m := &Writer{
		out: binio.NewOutput(w, "swap", wire.MaxPayload), opts: opts,
		mapped: map[place]uint64{}, apis: map[string]*wire.API{}, others: map[string]*wire.API{}, sockets: map[descriptor]bool{},
		ownAPI: wire.FirstNamedAPI,
	}
	for i := range wire.MemoryAPIs {
		api := &wire.MemoryAPIs[i]
		m.apis[api.Name] = api
	}
	for i := range wire.OtherAPIs {
		api := &wire.OtherAPIs[i]
		m.others[api.Name] = api
	}
	return m, nil
}

// Stats returns the counters so far.
func (m *Writer) Stats() Stats { return m.stats }

// Version is the version of the protocol that is written.
const Version = wire.Protocol

// APIs returns the names of the functions of probe messages by their numbers: the known
// ones and those in the trace. The caller owns the map.
func (m *Writer) APIs() map[uint32]string {
	apis := map[uint32]string{}
	for _, list := range []map[string]*wire.API{m.apis, m.others} {
		for name, api := range list {
			apis[api.ID] = name
		}
	}
	return apis
}

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

// beginAt begins a message with a time in ns since 1970.
func (m *Writer) beginAt(id uint32, wall int64) {
	if m.ends && !m.announced {
		m.announced = true
		m.beginAt(wire.End, wall)
		m.u32(0)
		m.end()
	}
	m.at = len(m.out.Buf)
	m.u32(id)
	m.u32(m.seq)
	m.seq++
	m.gap = 0
	if m.first == 0 {
		m.first = wall
	}
	m.time(wall)
	m.u32(0)
}

// end completes the message.
func (m *Writer) end() {
	binary.LittleEndian.PutUint32(m.out.Buf[m.at+16:], uint32(len(m.out.Buf)-m.at-wire.HeaderSize))
}

func (m *Writer) u32(v uint32) { m.out.Buf = binary.LittleEndian.AppendUint32(m.out.Buf, v) }
func (m *Writer) u64(v uint64) { m.out.Buf = binary.LittleEndian.AppendUint64(m.out.Buf, v) }

// time appends a time in ns since 1970.
func (m *Writer) time(wall int64) {
	if wall < 0 {
		wall = 0
	}
	seconds, nanos := uint32(wall/1e9), uint32(wall%1e9)
	if m.opts.Formula {
		seconds, nanos = nanos, seconds
	}
	m.u32(seconds)
	m.u32(nanos)
}

// text appends a string up to its first NUL, and no more than fits into the message.
func (m *Writer) text(s string) {
	// The other fields of a message take less than this.
	const others = 256
	room := wire.MaxPayload - others - (len(m.out.Buf) - m.at - wire.HeaderSize)
	if len(s) > room {
		s = s[:max(room, 0)]
		m.stats.Long++
	}
	for i := range len(s) {
		if s[i] == 0 {
			s = s[:i]
			break
		}
	}
	m.out.Buf = append(append(m.out.Buf, s...), 0)
}

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
