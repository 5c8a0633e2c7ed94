package sites

import "rtrace-bpf/trace"

// Memo remembers a number for each place that calls come from, so that what is
// costly about a place is done once: naming it, or finding out which group it
// belongs to. The zero Memo is empty.
type Memo struct {
	processes map[int32]*memo
	pid       int32
	latest    *memo // of pid
	words     int
}

// memo is what is remembered of a process.
type memo struct {
	places Table
	names  Names
	number []int // by place, plus 1
}

// maxMemo bounds the memory for places: words of 8 bytes. Then all are
// forgotten.
const maxMemo = 1 << 24

// Number returns the number of the place that a call comes from. If it is not
// known, find says it.
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

// Observe takes a record that is no call, and forgets all places if the record
// says that an address may be another function's from now on.
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
