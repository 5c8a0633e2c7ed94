package order

import (
	"rtrace-bpf/tracer/activity"
)

// addActivity takes a record of these programs, for which e stands in the order of
// events. The numbers of a ring begin with the source's.
func (in *Intake) addActivity(from *activity.Activity, record []byte, e *Event) {
	var x activity.Event
	if !from.Decode(record, &x) {
		in.Queue.drop()
		return
	}
	in.activityID++
	id := uint64(in.Number)<<48 | in.activityID
	in.Activities = append(in.Activities, NumberedActivity{id, x})
	*e = Event{Kind: KindActivity, Time: x.Time, TID: x.TID, CPU: in.cpu, Addr: id}
	in.Queue.settle()
}

// NumberedActivity is an event with the number by which its place in the order knows it.
type NumberedActivity struct {
	ID uint64
	activity.Event
}
