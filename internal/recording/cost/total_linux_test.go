package cost

import (
	"testing"
	"time"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
)

// The cost of a whole recording is that of all hits since the first reading, also of those that
// only Note saw. A reading of a process that has ended is left out with its hits.
func TestTotal(t *testing.T) {
	var m Meter
	now := time.Now()
	if _, ok := m.Total(costs); ok {
		t.Error("there is a total without readings")
	}
	m.Look(Reading{CPU: time.Second, Hits: host.Hits{Entries: 10}}, now, costs)
	if c, ok := m.Total(costs); ok {
		t.Errorf("one reading has the total %+v", c)
	}
	m.Look(Reading{CPU: 2 * time.Second, Hits: host.Hits{Entries: 110, Returns: 50, Inside: 1000}}, now.Add(time.Second), costs)
	m.Note(Reading{CPU: 4 * time.Second, Hits: host.Hits{Entries: 1010, Returns: 500, Faults: 7, Inside: 9000}})
	m.Note(Reading{Hits: host.Hits{Entries: 5000}})
	want := trace.Cost{Used: 3e9, Added: 1000*500 + 500*500 + 9000}
	if got, ok := m.Total(costs); !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
