package swap

import "rtrace-bpf/trace"

// queue holds records that are to be delivered before the next message is read.
type queue struct {
	records []trace.Record
	head    int // records before it were delivered
}

// add adds a record to set. It is valid until the next call.
func (q *queue) add() *trace.Record {
	q.records = append(q.records, trace.Record{})
	return &q.records[len(q.records)-1]
}

// take sets rec to the next record. It returns false if there is none.
func (q *queue) take(rec *trace.Record) bool {
	if q.head == len(q.records) {
		q.records, q.head = q.records[:0], 0
		return false
	}
	*rec = q.records[q.head]
	q.head++
	return true
}
