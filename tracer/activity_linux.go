package tracer

import (
	"rtrace-bpf/tracer/activity"
)

// addActivity takes a record of these programs, for which e stands in the order of
// events. The numbers of a ring begin with the source's.
func (in *intake) addActivity(from *activity.Activity, record []byte, e *event) {
	var x activity.Event
	if !from.Decode(record, &x) {
		in.queue.drop()
		return
	}
	in.activityID++
	id := uint64(in.number)<<48 | in.activityID
	in.activities = append(in.activities, numberedActivity{id, x})
	*e = event{kind: kindActivity, time: x.Time, tid: x.TID, cpu: in.cpu, addr: id}
	in.queue.settle()
}

// numberedActivity is an event with the number by which its place in the order knows it.
type numberedActivity struct {
	id uint64
	activity.Event
}
