package dotnet

import (
	"errors"
	"io"

	"rtrace-bpf/trace"
)

// merged is a trace of native calls with the events of the runtime among them, ordered by
// time.
type merged struct {
	native, managed ahead

	start int64 // time of the native header
	begun bool  // the records that the native trace begins with were read
	calls uint64
}

var _ trace.Reader = (*merged)(nil)

// ahead is a reader whose next record is known.
type ahead struct {
	from trace.Reader
	next trace.Record // valid if has
	has  bool
	err  error // the end of from
	time int64 // of the next record; if that has none, of the one before
}

// fill reads the next record. It reports whether there is one.
func (a *ahead) fill() bool {
	if a.has || a.err != nil {
		return a.has
	}
	if a.err = a.from.ReadRecord(&a.next); a.err != nil {
		return false
	}
	a.has = true
	a.time = max(a.time, a.next.Time)
	return true
}

// ReadRecord implements trace.Reader.
func (m *merged) ReadRecord(r *trace.Record) error {
	native, managed := m.native.fill(), m.managed.fill()
	if !managed && !errors.Is(m.managed.err, io.EOF) {
		return m.managed.err
	}
	from := &m.native
	switch {
	case native && !m.begun && m.beginning(&m.native.next):
	case managed && (!native || m.last(&m.native.next) || m.managed.time < m.native.time):
		from = &m.managed
	case !native:
		return m.native.err
	}
	*r, from.has = from.next, false
	if r.Kind == trace.KindCall {
		m.calls++
		r.Call.Seq = m.calls
	}
	return nil
}

// beginning reports whether a record describes the process at the beginning of the trace.
// These are before all others.
func (m *merged) beginning(r *trace.Record) bool {
	if r.Kind == trace.KindHeader {
		m.start = r.Time
	}
	m.begun = r.Time > m.start || r.Kind == trace.KindCall || r.Kind == trace.KindEnd
	return !m.begun
}

// last reports whether a record ends a trace.
func (m *merged) last(r *trace.Record) bool {
	return r.Kind == trace.KindEnd || r.Kind == trace.KindExit && r.Exit.Process
}
