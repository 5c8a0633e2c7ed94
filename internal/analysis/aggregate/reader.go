package aggregate

import "rtrace-bpf/trace"

// Reader is a trace.Reader that feeds an Engine with the records it returns.
type Reader struct {
	*Engine
	src trace.Reader
}

var _ trace.Reader = (*Reader)(nil)

// NewReader returns a Reader of src with a new Engine.
func NewReader(src trace.Reader) *Reader { return &Reader{New(), src} }

// ReadRecord implements trace.Reader.
func (r *Reader) ReadRecord(rec *trace.Record) error {
	err := r.src.ReadRecord(rec)
	if err == nil {
		r.Add(rec)
	}
	return err
}
