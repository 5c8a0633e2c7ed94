package nettrace

import "rtrace-bpf/trace"

// records holds records that are to be delivered before the next event is read.
type records struct {
	list []trace.Record
	next int // records before it were delivered
}

// push returns a new record to set, which is valid until the next call.
func (q *records) push(kind trace.Kind) *trace.Record {
	q.list = append(q.list, trace.Record{Kind: kind})
	return &q.list[len(q.list)-1]
}

// empty reports whether no record is held.
func (q *records) empty() bool { return len(q.list) == 0 }

// take sets rec to the next record. It returns false if there is none.
func (q *records) take(rec *trace.Record) bool {
	if q.next == len(q.list) {
		q.list, q.next = q.list[:0], 0
		return false
	}
	*rec = q.list[q.next]
	q.list[q.next] = trace.Record{}
	q.next++
	return true
}

// ending is how the stream ends; its error is nil until then.
type ending struct {
	err   error
	whole bool // an End is to be delivered
}

// next delivers the End, if the stream has it, and then returns the error.
func (n *ending) next(rec *trace.Record) error {
	if !n.whole {
		return n.err
	}
	n.whole = false
	rec.Kind, rec.Time, rec.PID, rec.TID, rec.CPU = trace.KindEnd, 0, 0, 0, 0
	return nil
}
