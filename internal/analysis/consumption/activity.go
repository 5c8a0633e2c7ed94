package consumption

import "fmt"

// activity is the report of what is allocated and freed in a slice of the axis. Each value
// is the sum over a slice; there are two values per slice.
type activity struct {
	*plot
	width, step int64
	n           int64  // number of values; the last one is after the last call
	most        uint64 // bytes of a value; the marks of peaks are a bit higher
	now         int64  // position of the last value in legacy mode, in which all resources and contexts share the steps
}

// maxValues bounds the number of values of all resources and contexts.
const maxValues = 1 << 22

// divide determines the slice for a number of types of resources.
func (a *activity) divide(kinds int) error {
	if !a.options.Reports.Has(Activity) {
		return nil
	}
	a.width = a.options.Slice
	switch {
	case a.options.Legacy:
		if a.width == 0 {
			a.width = 200 * millisecond
		}
		a.width = round(a.width/millisecond) * millisecond
		a.step = max(1, a.width/millisecond/2) * millisecond
		return nil
	case a.width == 0:
		a.width = round(a.span.Duration() / 20)
		if a.width == 0 && !a.span.Calls {
			a.width = 200 * millisecond
		}
	}
	a.width = max(2, a.width+a.width%2)
	a.step = a.width / 2
	a.n = a.span.Duration()/a.step + 1
	if parts := int64(kinds * (len(a.contexts) + 2)); a.n > maxValues/max(1, parts) {
		return fmt.Errorf("a slice of %s makes %d values; the limit is %d", a.length(a.width), a.n, maxValues/max(1, parts))
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

// add counts a call.
func (a *activity) add(e *event, alloc bool) {
	if a.options.Legacy {
		a.addLegacy(e, alloc)
		return
	}
	n := (e.at - a.span.First) / a.step
	for _, p := range e.kind.in(a.contexts, e.context) {
		a.begin(e.kind, p)
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

// begin begins the series of a part.
func (a *activity) begin(k *Kind, p *Part) {
	if p.timed {
		return
	}
	p.timed = true
	for _, s := range []struct {
		name   string
		series *int
	}{{"rate", &p.series.rate}, {"allocs", &p.series.allocs}, {"frees", &p.series.frees}} {
		*s.series = a.sink.Begin(Activity, heading(k.Type+" ("+s.name+":"+p.Context.Name+")"))
	}
	newCurve := func() *Curve { return newCurve(a.options.Columns, a.axis()) }
	p.Rate, p.Allocs, p.Frees = newCurve(), newCurve(), newCurve()
}

// axis returns the width of the axis of the curves, which begin one step after the first
// call.
func (a *activity) axis() int64 { return later(a.span.Duration(), a.step) }

// value records a value of a part, at the end of a slice.
func (a *activity) value(p *Part, at int64, sum step) {
	place := at - a.span.First
	a.point(p.Rate, p.series.rate, at, place, sum.bytes)
	a.point(p.Allocs, p.series.allocs, at, place, sum.allocs)
	a.point(p.Frees, p.series.frees, at, place, sum.frees)
	a.most = max(a.most, sum.bytes)
}

// finish records the values and writes the marks of the peaks.
func (a *activity) finish() {
	if a.options.Legacy {
		a.finishLegacy()
	} else {
		for _, k := range a.Kinds() {
			for _, p := range k.Everything() {
				a.values(k, p)
			}
		}
	}
	for _, k := range a.Kinds() {
		for _, m := range []struct {
			name string
			rate Rate
		}{{"rate", k.Rates.Bytes}, {"allocs", k.Rates.Allocs}, {"frees", k.Rates.Frees}} {
			name := k.Type + " (peak " + m.name + ":" + a.text(m.rate.At)
			switch {
			case a.options.Legacy: // the original forgets the parenthesis, and marks 0 if there is no peak
			case !m.rate.Found:
				continue
			default:
				name += ")"
			}
			a.mark(Activity, name, m.rate.At, a.most)
		}
	}
}

// values records all values of a part.
func (a *activity) values(k *Kind, p *Part) {
	if !p.timed {
		return
	}
	var before step
	for i := range a.n {
		var now step
		if i < int64(len(p.steps)) {
			now = p.steps[i]
		}
		sum := step{before.bytes + now.bytes, before.allocs + now.allocs, before.frees + now.frees}
		at := later(a.span.First, later(i*a.step, a.step))
		a.value(p, at, sum)
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
