package sites

import "rtrace-bpf/trace"

// Memo caches a number for each place that calls come from, so that costly
// work, such as naming a place or finding its group, is done once. The zero
// Memo is empty.
type Memo struct {
	processes map[int32]*memo
	pid       int32
	latest    *memo // of pid
	words     int
}

// memo is the cache of one process.
type memo struct {
	places Table
	names  Names
	number []int // by place, plus 1
}

// maxMemo bounds the size of all places, in words of 8 bytes. Above it the Memo
// is reset.
const maxMemo = 1 << 24

// Number returns the number of the place that a call comes from. It calls find
// for a place that is not in the cache.
func (m *Memo) Number(r *trace.Record, find func(*trace.Record) int) int {
	if m.latest == nil || m.pid != r.PID {
		if m.words > maxMemo {
			m.Reset()
		}
		m.latest, m.pid = m.processes[r.PID], r.PID
		if m.latest == nil {
			m.latest = new(memo)
			if m.processes == nil {
				m.processes = make(map[int32]*memo)
			}
			m.processes[r.PID] = m.latest
		}
	}
	of := m.latest
	before := of.places.Words()
	place := int(of.places.Add(&r.Call.Stack, &r.Call.Caller, &of.names))
	if place < len(of.number) && of.number[place] != 0 {
		return of.number[place] - 1
	}
	n := find(r)
	for place >= len(of.number) {
		of.number = append(of.number, 0)
	}
	of.number[place] = n + 1
	if m.words += of.places.Words() - before; m.words > maxMemo {
		m.Reset()
	}
	return n
}

// Observe resets the Memo if a record changes which function is at an address.
func (m *Memo) Observe(r *trace.Record) {
	switch r.Kind {
	case trace.KindMapping, trace.KindUnmapping, trace.KindModule, trace.KindExec, trace.KindFunction:
		if m.words > 0 {
			m.Reset()
		}
	}
}

// Reset forgets all places.
func (m *Memo) Reset() { *m = Memo{} }
