package order

import (
	"rtrace-bpf/tracer/activity"
)

// addActivity keeps an activity record and makes e the event that refers to it by number.
// The number begins with that of the source, so that it is unique among all rings.
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

// NumberedActivity is an activity event with the number by which the Event in the queue
// refers to it.
type NumberedActivity struct {
	ID uint64
	activity.Event
}
