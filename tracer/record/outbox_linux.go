package record

import "rtrace-bpf/trace"

// outbox is a queue of rare records, which come before the record of the next event.
type outbox struct {
	queue []trace.Record
	head  int // index of the next record
}

func (o *outbox) emit(r trace.Record) { o.queue = append(o.queue, r) }

// pop fills r with the next record and reports whether there is one.
func (o *outbox) pop(r *trace.Record) bool {
	if o.head == len(o.queue) {
		o.queue, o.head = o.queue[:0], 0
		return false
	}
	*r = o.queue[o.head]
	o.queue[o.head] = trace.Record{}
	o.head++
	return true
}
