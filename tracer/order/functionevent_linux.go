package order

import (
	"rtrace-bpf/tracer/functions"
)

// NumberedCall is an event with the number by which its place in the order knows it.
type NumberedCall struct {
	ID uint64
	functions.Event
}

// addCall takes a record about a named function, for which e stands in the order of
// events.
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
