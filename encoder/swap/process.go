package swap

import (
	"encoding/binary"
	"path"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// pending is a PROCESS_INFO that waits for its mappings.
type pending struct {
	open    bool
	pid     int32
	time    int64
	process trace.Process
	maps    []trace.Mapping
	size    int    // bytes of the mappings
	task    string // name of the main thread
}

// maxTaskName is the longest name of a task in bytes.
const maxTaskName = 15

// libraryRoom is how many bytes the list of mappings may have. Mappings that do not fit
// get a PROCESS_MAP each.
const libraryRoom = wire.MaxPayload / 2

// continues reports whether a record leaves the message open.
func (p *pending) continues(r *trace.Record) bool {
	switch r.Kind {
	case trace.KindHeader, trace.KindResource, trace.KindTracerModule, trace.KindModule, trace.KindAttachment, trace.KindContext:
		return true
	case trace.KindThread:
		return r.PID == p.pid && r.Time == p.time
	case trace.KindMapping:
		// The mappings at the start have its time. Formats without times of mappings
		// have them after it.
		return r.PID == p.pid && (r.Time == p.time || r.Time == 0) && p.size+17+len(r.Mapping.Path) <= libraryRoom
	}
	return false
}

func (m *Writer) beginProcess(r *trace.Record) {
	if m.process.open {
		m.endProcess()
	}
	if m.clock.start == 0 {
		m.clock.start = r.Process.WallTime
	}
	m.process = pending{open: true, pid: r.PID, time: r.Time, process: r.Process, maps: m.process.maps[:0]}
}

// endProcess writes the message.
func (m *Writer) endProcess() {
	p := &m.process
	p.open = false
	name := p.process.Name
	if m.opts.Dialect == Kernel {
		if name = taskName(name); p.task != "" {
			name = taskName(p.task)
		}
	}
	program := p.program()
	m.begin(wire.ProcessInfo, p.time)
	m.u32(uint32(p.pid))
	m.text(name)
	m.u32(uint32(p.process.Parent))
	m.time(p.process.Started)
	if program < 0 {
		m.u64(0)
		m.u64(0)
		if p.process.Path != "" {
			m.text(p.process.Path)
		} else {
			m.text(wire.NoPath)
		}
	} else {
		m.bounds(p.pid, &p.maps[program])
		m.text(p.maps[program].Path)
	}
	at := len(m.out.Buf)
	m.u32(0)
	n := uint32(0)
	for i := range p.maps {
		if i != program {
			m.bounds(p.pid, &p.maps[i])
			m.text(p.maps[i].Path)
			n++
		}
	}
	binary.LittleEndian.PutUint32(m.out.Buf[at:], n)
	m.end()
	if p.task != "" && m.opts.Dialect == Document && p.task != taskName(name) {
		m.comm(p.pid, p.time, p.task)
	}
}

// program returns the index of the mapping of the program, or -1.
func (p *pending) program() int {
	name := p.process.Path
	command, _, _ := strings.Cut(p.process.Name, " ")
	for i := range p.maps {
		mapped := p.maps[i].Path
		if name != "" && mapped == name || name == "" && command != "" && path.Base(mapped) == path.Base(command) {
			return i
		}
	}
	return -1
}

// taskName returns the kernel's name for a process with this command line.
func taskName(command string) string {
	command, _, _ = strings.Cut(command, " ")
	command = path.Base(command)
	return command[:min(len(command), maxTaskName)]
}

// place identifies the end of a mapping.
type place struct {
	pid int32
	end uint64
}

// maxMapped bounds how many bounds of mappings are remembered.
const maxMapped = 1 << 16

// bounds appends the bounds of a mapping. The low bound is the address of the file's
// offset 0, so that an address minus that is the address within the file.
func (m *Writer) bounds(pid int32, b *trace.Mapping) {
	low := b.Base
	if low == 0 {
		low = b.Start
	}
	if len(m.mapped) < maxMapped {
		m.mapped[place{pid, b.End}] = low
	}
	m.u64(low)
	m.u64(b.End)
}

func (m *Writer) mapping(r *trace.Record) {
	if p := &m.process; p.open {
		p.maps = append(p.maps, r.Mapping)
		p.size += 17 + len(r.Mapping.Path)
		return
	}
	m.begin(wire.ProcessMap, r.Time)
	m.u32(uint32(r.PID))
	m.bounds(r.PID, &r.Mapping)
	m.text(r.Mapping.Path)
	m.end()
}

// unmapping repeats the bounds of the mapping that it ends.
func (m *Writer) unmapping(r *trace.Record) {
	key := place{r.PID, r.Mapping.End}
	low, ok := m.mapped[key]
	if !ok {
		low = r.Mapping.Start
	}
	delete(m.mapped, key)
	m.begin(wire.ProcessUnmap, r.Time)
	m.u32(uint32(r.PID))
	m.u64(low)
	m.u64(r.Mapping.End)
	m.end()
}

// thread gives a process the name of its main thread.
func (m *Writer) thread(r *trace.Record) {
	switch {
	case r.TID != r.PID:
	case m.process.open:
		m.process.task = strings.Clone(r.Thread.Name)
	default:
		m.comm(r.PID, r.Time, r.Thread.Name)
	}
}

func (m *Writer) comm(pid int32, now int64, name string) {
	if m.opts.Dialect == Kernel {
		name = taskName(name)
	}
	m.begin(wire.ProcessComm, now)
	m.u32(uint32(pid))
	m.text(name)
	m.end()
}
