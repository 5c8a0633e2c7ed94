package order

import (
	"rtrace-bpf/tracer/functions"
)

// NumberedCall is a function event with the number by which the Event in the queue refers
// to it.
type NumberedCall struct {
	ID uint64
	functions.Event
}

// addCall keeps a record about a call of a traced function, and makes e the event that
// refers to it by number.
func (in *Intake) addCall(from *functions.Functions, record []byte, e *Event) {
	var x functions.Event
	if !from.Decode(record, &x) {
		in.Queue.drop()
		return
	}
	in.callID++
	id := uint64(in.Number)<<48 | in.callID
	in.Calls = append(in.Calls, NumberedCall{id, x})
	*e = Event{Kind: KindFunction, Time: x.Time, TID: x.TID, CPU: in.cpu, Addr: id}
	in.Queue.settle()
}
