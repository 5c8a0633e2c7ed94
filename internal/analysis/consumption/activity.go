package consumption

import "fmt"

// slicing is the division of the axis in the activity report. Each value is the
// sum over a slice; there are two values per slice.
type slicing struct {
	width, step int64
	n           int64 // number of values; the last one is after the last call

	// For legacy mode, in which all resources and contexts share the steps:
	now  int64 // position of the last value
	most uint64
}

// maxValues bounds the number of values of all resources and contexts.
const maxValues = 1 << 22

// setSlice determines the slice.
func (u *Usage) setSlice(kinds int) error {
	if !u.options.Reports.Has(Activity) {
		return nil
	}
	s := &u.slices
	s.width = u.options.Slice
	switch {
	case u.options.Legacy:
		if s.width == 0 {
			s.width = 200 * millisecond
		}
		s.width = round(s.width/millisecond) * millisecond
		s.step = max(1, s.width/millisecond/2) * millisecond
		return nil
	case s.width == 0:
		s.width = round(u.span.Duration() / 20)
		if s.width == 0 && !u.span.Calls {
			s.width = 200 * millisecond
		}
	}
	s.width = max(2, s.width+s.width%2)
	s.step = s.width / 2
	s.n = u.span.Duration()/s.step + 1
	if parts := int64(kinds * (len(u.contexts) + 2)); s.n > maxValues/max(1, parts) {
		return fmt.Errorf("a slice of %s makes %d values; the limit is %d", u.length(s.width), s.n, maxValues/max(1, parts))
	}
	return nil
}

// round sets all digits of a number but the first to 0. Like the original, it
// returns 1 for 0.
func round(v int64) int64 {
	power := int64(1)
	for ; v >= 10; v /= 10 {
		power *= 10
	}
	return v * power
}

// Slice returns the length of the slices of the activity report.
func (u *Usage) Slice() int64 { return u.slices.width }

// step is the calls between two values.
type step struct {
	bytes         uint64
	allocs, frees uint64
}

// Rates holds the values of the activity report with the most bytes, the most
// allocations and the most frees.
type Rates struct {
	Bytes, Allocs, Frees Rate
}

// Rate is a value of the activity report.
type Rate struct {
	Count uint64 // allocations; frees in Rates.Frees
	Bytes uint64
	At    int64 // end of the slice
	Found bool
}

// activity counts a call in the activity report.
func (u *Usage) activity(e *event, alloc bool) {
	if u.options.Legacy {
		u.legacyActivity(e, alloc)
		return
	}
	n := (e.at - u.span.First) / u.slices.step
	for _, p := range u.in(e.kind, e.context) {
		u.beginActivity(e.kind, p)
		for int64(len(p.steps)) <= n {
			p.steps = append(p.steps, step{})
		}
		p.steps[n].add(e, alloc)
	}
}

func (s *step) add(e *event, alloc bool) {
	if alloc {
		s.bytes += e.size
		s.allocs++
	} else {
		s.frees++
	}
}

// beginActivity begins the series of a part.
func (u *Usage) beginActivity(k *Kind, p *Part) {
	if p.timed {
		return
	}
	p.timed = true
	for _, s := range []struct {
		name   string
		series *int
	}{{"rate", &p.series.rate}, {"allocs", &p.series.allocs}, {"frees", &p.series.frees}} {
		*s.series = u.sink.Begin(Activity, heading(k.Type+" ("+s.name+":"+p.Context.Name+")"))
	}
	newCurve := func() *Curve { return newCurve(u.options.Columns, u.activityWidth()) }
	p.Rate, p.Allocs, p.Frees = newCurve(), newCurve(), newCurve()
}

// activityWidth returns the width of the curves of the activity report, which
// begin one step after the first call.
func (u *Usage) activityWidth() int64 { return later(u.span.Duration(), u.slices.step) }

// value records a value of a part, at the end of a slice.
func (u *Usage) value(p *Part, at int64, sum step) {
	place := at - u.span.First
	u.point(p.Rate, p.series.rate, at, place, sum.bytes)
	u.point(p.Allocs, p.series.allocs, at, place, sum.allocs)
	u.point(p.Frees, p.series.frees, at, place, sum.frees)
	u.slices.most = max(u.slices.most, sum.bytes)
}

// activityEnd records the values and writes the marks of the peaks.
func (u *Usage) activityEnd() {
	if u.options.Legacy {
		u.legacyActivityEnd()
	} else {
		for _, k := range u.Kinds() {
			for _, p := range k.Everything() {
				u.values(k, p)
			}
		}
	}
	for _, k := range u.Kinds() {
		for _, m := range []struct {
			name string
			rate Rate
		}{{"rate", k.Rates.Bytes}, {"allocs", k.Rates.Allocs}, {"frees", k.Rates.Frees}} {
			name := k.Type + " (peak " + m.name + ":" + u.text(m.rate.At)
			switch {
			case u.options.Legacy: // the original forgets the parenthesis, and marks 0 if there is no peak
			case !m.rate.Found:
				continue
			default:
				name += ")"
			}
			u.mark(Activity, name, m.rate.At, u.slices.most)
		}
	}
}

// values records all values of a part.
func (u *Usage) values(k *Kind, p *Part) {
	if !p.timed {
		return
	}
	var before step
	for i := range u.slices.n {
		var now step
		if i < int64(len(p.steps)) {
			now = p.steps[i]
		}
		sum := step{before.bytes + now.bytes, before.allocs + now.allocs, before.frees + now.frees}
		at := later(u.span.First, later(i*u.slices.step, u.slices.step))
		u.value(p, at, sum)
		if p == k.all {
			k.Rates.see(sum, at)
		}
		before = now
	}
	p.steps = nil
}

func (r *Rates) see(s step, at int64) {
	if s.bytes > r.Bytes.Bytes {
		r.Bytes = Rate{s.allocs, s.bytes, at, true}
	}
	if s.allocs > r.Allocs.Count {
		r.Allocs = Rate{s.allocs, s.bytes, at, true}
	}
	if s.frees > r.Frees.Count {
		r.Frees = Rate{s.frees, s.bytes, at, true}
	}
}
