package cost

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rtrace-bpf/tracer/host"
)

// costs are those of a machine: half a microsecond each.
var costs = host.Costs{Entry: 500, Return: 500}

// There is a warning when tracing takes much of the CPU time of the process, and another
// when the slow-down has doubled. Lost calls cost the same.
func TestLook(t *testing.T) {
	var m Meter
	now, r := time.Now(), Reading{}
	m.Look(r, now, costs)
	for i, test := range []struct {
		hits        uint64 // entries; half as many returns
		calls, lost uint64
		cpu         time.Duration
		want        Interval
		warn        bool
	}{
		{0, 0, 0, time.Second, Interval{}, false},
		{20_000, 20_000, 0, time.Second, Interval{20_000, 0.015, 0.015, 0}, false},
		{20_000, 20_000, 0, 30 * time.Millisecond, Interval{20_000, 0.5, 0.015, 0}, false}, // little altogether
		{200_000, 200_000, 0, time.Second, Interval{200_000, 0.15, 0.15, 0}, true},
		{400_000, 400_000, 0, time.Second, Interval{400_000, 0.3, 0.3, 0}, false},
		{800_000, 800_000, 0, time.Second, Interval{800_000, 0.6, 0.6, 0}, true},
		{1_200_000, 1_200_000, 0, time.Second, Interval{1_200_000, 0.9, 0.9, 0}, true},
		{1_200_000, 1_199_000, 1_000, time.Second, Interval{1_200_000, 0.9, 0.9, 1_000. / 1_200_000}, false},
		{1_200_000, 72_000, 1_128_000, time.Second, Interval{1_200_000, 0.9, 0.9, 0.94}, true}, // once
		{1_200_000, 72_000, 1_128_000, time.Second, Interval{1_200_000, 0.9, 0.9, 0.94}, false},
		{4_000_000, 4_000_000, 0, time.Second, Interval{4_000_000, 0.95, 3, 0}, false}, // more than there is
	} {
		now = now.Add(time.Second)
		r.Hits.Entries += test.hits
		r.Hits.Returns += test.hits / 2
		r.Calls += test.calls
		r.Lost += test.lost
		r.CPU += test.cpu
		got, warn := m.Look(r, now, costs)
		if d := cmp.Diff(test.want, got, cmpopts.EquateApprox(1e-9, 0)); d != "" || warn != test.warn {
			t.Errorf("look %d: warns: %v, want %v (-want +got):\n%s", i, warn, test.warn, d)
		}
	}
}

// A program most of whose calls are lost is slowed down as much as if they were there.
func TestLostCalls(t *testing.T) {
	var m Meter
	now := time.Now()
	m.Look(Reading{}, now, costs)
	r := Reading{Hits: host.Hits{Entries: 1_200_000, Returns: 600_000}, Calls: 72_000, Lost: 1_128_000, CPU: time.Second}
	if b, warn := m.Look(r, now.Add(time.Second), costs); !warn || b.Share != 0.9 {
		t.Errorf("%+v, warns: %v", b, warn)
	}
}

// An interval is computed from the hits of probes and the processor time of the process.
func TestInterval(t *testing.T) {
	for name, test := range map[string]struct {
		r    Reading
		want Interval
		warn bool
	}{
		"plain":          {Reading{host.Hits{Entries: 1_200_000, Returns: 600_000}, 1_200_000, 0, time.Second}, Interval{1_200_000, 0.9, 0.9, 0}, true},
		"lost":           {Reading{host.Hits{Entries: 1_200_000, Returns: 600_000}, 72_000, 1_128_000, time.Second}, Interval{1_200_000, 0.9, 0.9, 0.94}, true},
		"lost alone":     {Reading{host.Hits{}, 990, 10, time.Second}, Interval{Rate: 1_000, Lost: 0.01}, true},
		"half":           {Reading{host.Hits{Entries: 400_000, Returns: 200_000, Inside: 100_000_000}, 400_000, 0, time.Second}, Interval{400_000, 0.4, 0.4, 0}, true},
		"beyond measure": {Reading{host.Hits{Entries: 2_000_000}, 1_000_000, 0, time.Second}, Interval{1_000_000, 0.95, 1, 0}, true},
		"cheap":          {Reading{host.Hits{Entries: 1_000}, 1_000, 0, time.Second}, Interval{1_000, 0.0005, 0.0005, 0}, false},
	} {
		var m Meter
		now := time.Now()
		m.Look(Reading{}, now, costs)
		got, warn := m.Look(test.r, now.Add(time.Second), costs)
		if d := cmp.Diff(test.want, got, cmpopts.EquateApprox(1e-9, 0)); d != "" || warn != test.warn {
			t.Errorf("%s: warn: %v, want %v (-want +got):\n%s", name, warn, test.warn, d)
		}
	}
}

// Calls that arrive after a reading which has their hits count in the time in which they
// were made, not in the moment in which they arrive.
func TestCallsArriveLate(t *testing.T) {
	var m Meter
	now := time.Now()
	m.Look(Reading{}, now, costs)
	hits := host.Hits{Entries: 200_000, Returns: 100_000}
	for range 2 {
		now = now.Add(10 * time.Second)
		if i, warn := m.Look(Reading{Hits: hits, Calls: 1_000, CPU: 200 * time.Millisecond}, now, costs); warn {
			t.Errorf("warns of %+v", i)
		}
	}
	r := Reading{Hits: hits, Calls: 2_000, Lost: 198_000, CPU: 200 * time.Millisecond}
	got, warn := m.Look(r, now.Add(20*time.Second), costs)
	want := Interval{Rate: 5_000, Share: 0.75, Busy: 0.00375, Lost: 0.99}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-9, 0)); d != "" || !warn {
		t.Errorf("warns: %v (-want +got):\n%s", warn, d)
	}
}

// A Meter does not grow with the recording.
func TestReadingsAreFew(t *testing.T) {
	var m Meter
	now := time.Now()
	for i := range 10 * mostReadings {
		m.Look(Reading{}, now.Add(time.Duration(i)*time.Second), costs)
	}
	if n := len(m.readings); n != mostReadings {
		t.Errorf("%d readings are kept, want %d", n, mostReadings)
	}
}
