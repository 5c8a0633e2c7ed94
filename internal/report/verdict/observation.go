package verdict

import (
	"fmt"
	"time"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/report/figure"
)

// EnoughTime is the shortest recording after which it means something that no
// call site grows.
const EnoughTime = 10 * time.Second

// Observation is what the verdicts on call sites rest on.
type Observation struct {
	Judged bool          // verdicts are possible: the trace has frees, and is no sample
	Time   time.Duration // from the first call to the last
	Since  time.Duration // when the last gap in the recording ended; 0 without gaps
	Gaps   uint64        // times in which nothing was recorded
	Frees  uint64        // missing calls that may have been frees, without those in gaps
}

// ObservationOf returns what verdicts on a type of resource rest on, or on all
// types if resource is empty.
func ObservationOf(s *aggregate.State, resource string) Observation {
	o := Observation{Time: time.Duration(s.Time), Since: time.Duration(s.Gap), Gaps: s.Lost.Gaps(), Frees: s.Lost.HiddenFrees()}
	for i := range s.Resources {
		if r := &s.Resources[i]; resource == "" || r.Type == resource {
			o.Judged = o.Judged || r.Judged()
		}
	}
	return o
}

// Enough reports whether it means something that no call site grows.
func (o *Observation) Enough() bool {
	return o.Judged && o.Time >= EnoughTime && o.Time-o.Since >= max(EnoughTime, o.Time/2)
}

// None returns the verdict if no call site is a suspect: that none grows, or why
// this is not known.
func (o *Observation) None() string {
	const unknown = ": too short to tell whether a call site grows steadily"
	switch {
	case !o.Judged:
		return "no verdict on growth: no frees were recorded"
	case o.Enough():
		return fmt.Sprintf("no call site grows steadily (%s observed)", duration(o.Time))
	case o.Time < EnoughTime || o.Gaps == 0:
		return fmt.Sprintf("only %s observed", duration(o.Time)) + unknown
	case o.Time <= o.Since:
		return "nothing observed since the last gap in the recording" + unknown
	}
	return fmt.Sprintf("only %s of %s observed since the last gap in the recording", duration(o.Time-o.Since), duration(o.Time)) + unknown
}

// Doubts returns why the verdicts may be wrong, each reason as a sentence
// without a full stop.
func (o *Observation) Doubts() (all []string) {
	if o.Gaps > 0 {
		gaps := "a gap"
		if o.Gaps > 1 {
			gaps = figure.Count(o.Gaps) + " gaps"
		}
		all = append(all, fmt.Sprintf("careful: the recording has %s; verdicts rest on blocks allocated since %s", gaps, clock(int64(o.Since))))
	}
	if o.Frees > 0 {
		calls := "a lost call may be a free"
		if o.Frees > 1 {
			calls = figure.Count(o.Frees) + " lost calls may be frees"
		}
		all = append(all, fmt.Sprintf("careful: %s; a block whose free was lost looks live", calls))
	}
	return all
}

// duration formats a duration: with three significant digits below a minute, in
// whole seconds from there on.
func duration(d time.Duration) string {
	if d < time.Minute {
		return figure.Seconds(uint64(max(0, d)))
	}
	return d.Round(time.Second).String()
}

// clock formats a time since the start of the recording as minutes and seconds,
// preceded by hours if there are any.
func clock(ns int64) string {
	s := ns / 1e9
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}
