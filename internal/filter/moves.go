package filter

import (
	"strings"

	"rtrace-bpf/trace"
)

// JoinMoves joins the two calls that some formats write for a realloc: a free
// and, right after it, an allocation by the same function in the same thread,
// or in MTRC before version 1.4.4, which has no functions, with the same index.
// It joins only calls of memory, because no other call of an allocator frees
// and allocates. It also joins a realloc(p, 0) with a realloc(NULL, n) right
// after it. The joined call has the Seq, the stack and the arguments of the
// allocation, and the time of the free as its EntryTime.
type JoinMoves struct {
	src    trace.Reader
	others map[uint32]bool // resources that are not memory
	index  bool            // calls are joined by index
	held   bool            // next holds the next record
	next   trace.Record
	err    error // follows it
}

var _ trace.Reader = (*JoinMoves)(nil)

// NewJoinMoves returns a JoinMoves that reads src.
func NewJoinMoves(src trace.Reader) *JoinMoves {
	return &JoinMoves{src: src, others: make(map[uint32]bool)}
}

// ReadRecord implements trace.Reader.
func (j *JoinMoves) ReadRecord(r *trace.Record) error {
	if j.held {
		j.held = false
		if j.err != nil {
			return j.err
		}
		*r = j.next
	} else if err := j.src.ReadRecord(r); err != nil {
		return err
	}
	switch r.Kind {
	case trace.KindResource:
		j.others[r.Resource.ID] = r.Resource.Type != "memory"
	case trace.KindHeader:
		j.index = r.Header.Format == "mtrc" && r.Header.Version < "1.4.4"
	}
	c := &r.Call
	if r.Kind != trace.KindCall || c.Op != trace.OpFree || c.ID == 0 || j.others[c.Resource] || !j.index && !strings.Contains(c.Function, "alloc") {
		return nil
	}
	// Clone the free, because the source reuses its memory.
	free := r.Clone()
	if j.err = j.src.ReadRecord(&j.next); j.err != nil {
		j.held = true
		*r = *free
		return nil
	}
	if a := &j.next; j.same(free, a) {
		*r = *a
		c.Op, c.OldID, c.EntryTime = trace.OpMove, free.Call.ID, free.Time
		return nil
	}
	j.held = true
	*r = *free
	return nil
}

// same reports whether a free and the allocation after it are one move.
func (j *JoinMoves) same(free, a *trace.Record) bool {
	if a.Kind != trace.KindCall || a.Call.Op != trace.OpAlloc || a.PID != free.PID || a.TID != free.TID ||
		a.Call.Thread != free.Call.Thread || a.Call.Resource != free.Call.Resource {
		return false
	}
	if j.index {
		return a.Call.Index != 0 && a.Call.Index == free.Call.Index
	}
	return a.Call.Function == free.Call.Function
}
