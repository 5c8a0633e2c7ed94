package swap

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// System is the state of a machine, for SYSTEM. Fields of the message that System lacks
// are written as 0, because no ordinary machine provides them.
type System struct {
	Frequencies []float32 // of each processor, in kHz
	Loads       []float32 // of each processor, in percent; as many as Frequencies
	MemoryUsed  uint64    // bytes
	Target      SystemProcess
	Others      []SystemLoad
	// Figures holds the other numbers by the names of their fields. Numbers too large
	// for a field are cut to its maximum.
	Figures map[string]uint64
}

// SystemProcess is the state of a traced process.
type SystemProcess struct {
	SystemLoad
	Virtual, Resident, Shared, PSS, TotalAlloc uint64 // bytes
	Threads                                    []SystemLoad
}

// SystemLoad is the processor time that a process or thread uses.
type SystemLoad struct {
	ID      int32
	Percent float32 // of all processors together
}

// SystemDevices returns the names of the devices in the lists of SYSTEM.
func SystemDevices() []string { return slices.Clone(wire.Devices) }

// Record returns the message as a record that owns its memory. If there is no room for
// all threads and other processes, it keeps those with the highest load.
func (s *System) Record(now int64, pid int32) trace.Record {
	// Each list may use half of the room; this is for the other fields.
	const others = 512
	room := (wire.MaxPayload - others - 8*len(s.Loads)) / 2 / loadSize
	b := appendFloats(nil, s.Frequencies, len(s.Loads))
	b = appendFloats(b, s.Loads, len(s.Loads))
	b = binary.LittleEndian.AppendUint64(b, s.MemoryUsed)
	t := &s.Target
	b = binary.LittleEndian.AppendUint32(b, 1)
	b = appendLoad(b, t.SystemLoad)
	for _, n := range [...]uint64{t.Virtual, t.Resident, t.Shared, t.PSS, t.TotalAlloc} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = appendLoads(b, t.Threads, room)
	b = appendLoads(b, s.Others, room)
	fields := wire.Lookup(wire.System).Layouts[0].Fields
	after := slices.IndexFunc(fields, func(f wire.Field) bool { return f.Name == "other_processes" }) + 1
	for i := range fields[after:] {
		f := &fields[after+i]
		n := 1
		if f.Count == wire.PerDevice {
			n = len(wire.Devices)
		}
		for range n {
			b = binary.LittleEndian.AppendUint32(b, uint32(min(s.Figures[f.Name], math.MaxUint32)))
		}
	}
	return opaque(wire.System, now, pid, b)
}

// loadSize is the size in bytes of a process or thread with its load.
const loadSize = 8

// leastLoad is the smallest load that is written: readers take smaller numbers for
// something else.
const leastLoad = 0.001

func appendLoad(b []byte, l SystemLoad) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(l.ID))
	return appendFloat(b, l.Percent)
}

func appendFloat(b []byte, f float32) []byte {
	if f < leastLoad || math.IsNaN(float64(f)) {
		f = 0
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
}

// appendFloats appends n numbers. Missing ones are 0.
func appendFloats(b []byte, list []float32, n int) []byte {
	for i := range n {
		f := float32(0)
		if i < len(list) {
			f = list[i]
		}
		b = appendFloat(b, f)
	}
	return b
}

// appendLoads appends a list of at most room elements, with its count.
func appendLoads(b []byte, list []SystemLoad, room int) []byte {
	if room = max(room, 0); len(list) > room {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b SystemLoad) int { return cmp.Compare(b.Percent, a.Percent) })
		list = list[:room]
		slices.SortFunc(list, func(a, b SystemLoad) int { return cmp.Compare(a.ID, b.ID) })
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(list)))
	for _, l := range list {
		b = appendLoad(b, l)
	}
	return b
}

// opaque returns a message as the decoder delivers it, as a record of KindOpaque.
func opaque(id uint32, now int64, pid int32, payload []byte) trace.Record {
	return trace.Record{Kind: trace.KindOpaque, Time: now, PID: pid, Opaque: trace.Opaque{Format: wire.Format, ID: id, Data: payload}}
}

// appendString appends a string up to its first NUL, and a NUL.
func appendString(b []byte, s string) []byte {
	s, _, _ = strings.Cut(s, "\x00")
	return append(append(b, s...), 0)
}
