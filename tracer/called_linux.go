package tracer

import (
	"rtrace-bpf/tracer/functions"
)

// numberedCall is an event with the number by which its place in the order knows it.
type numberedCall struct {
	id uint64
	functions.Event
}

// addCall takes a record about a named function, for which e stands in the order of
// events.
func (in *intake) addCall(from *functions.Functions, record []byte, e *event) {
	var x functions.Event
	if !from.Decode(record, &x) {
		in.queue.drop()
		return
	}
	in.callID++
	id := uint64(in.number)<<48 | in.callID
	in.calls = append(in.calls, numberedCall{id, x})
	*e = event{kind: kindFunction, time: x.Time, tid: x.TID, cpu: in.cpu, addr: id}
	in.queue.settle()
}
