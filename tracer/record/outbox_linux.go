package record

import "rtrace-bpf/trace"

// outbox holds rare records that are due before the next event.
type outbox struct {
	queue []trace.Record
	head  int // the next one
}

func (o *outbox) emit(r trace.Record) { o.queue = append(o.queue, r) }

// pop returns the next record.
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
