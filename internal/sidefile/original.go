package sidefile

import "rtrace-bpf/trace"

// maxPrelude is the largest number of records before main's Process.
const maxPrelude = 64

// original is the trace to which a side file belongs.
type original struct {
	r          trace.Reader
	prelude    []*trace.Record // read ahead up to its Process
	preludeErr error

	isHeld bool // held or err was read and is returned next
	held   trace.Record
	err    error

	pos    uint64 // of the next call
	pid    int32  // of its Process
	marked bool   // it announces an End
	sawEnd bool   // it has an End
}

// readPrelude reads the records up to the Process.
func (m *original) readPrelude() {
	for len(m.prelude) < maxPrelude {
		var r trace.Record
		if m.preludeErr = m.r.ReadRecord(&r); m.preludeErr != nil {
			return
		}
		m.prelude = append(m.prelude, r.Clone())
		if r.Kind == trace.KindProcess || r.Kind == trace.KindCall {
			return
		}
	}
}

// next reads a record.
func (m *original) next(r *trace.Record) error {
	if len(m.prelude) > 0 {
		*r = *m.prelude[0]
		m.prelude = m.prelude[1:]
		return nil
	}
	if m.preludeErr != nil {
		return m.preludeErr
	}
	return m.r.ReadRecord(r)
}
