package consumption

import "rtrace-bpf/internal/live"

// totalsAlloc counts a block that began in the report of totals.
func (u *Usage) totalsAlloc(e *event) {
	k := e.kind
	if k.Sum == nil {
		width := u.span.Width()
		k.Sum, k.Allocs = newCurve(u.options.Columns, width), newCurve(u.options.Columns, width)
		if k.overhead > 0 {
			k.Overhead = newCurve(u.options.Columns, width)
			k.series.overhead = u.sink.Begin(Totals, heading(k.Type+" overhead"))
		}
		k.series.allocs = u.sink.Begin(Totals, heading(k.Type+": total allocs"))
	}
	k.Allocs.add(e.place, k.Allocated.Blocks)
	u.sink.Point(k.series.allocs, e.at, k.Allocated.Blocks)
	for _, p := range u.in(k, e.context) {
		u.level(k, p, e, e.size)
	}
	u.withOverhead(k, e, e.size+k.overhead)
}

// totalsFree counts a block that ended.
func (u *Usage) totalsFree(e *event) {
	mask := e.born.context
	if u.options.Legacy {
		mask = e.context
	}
	for _, p := range u.in(e.kind, mask) {
		u.level(e.kind, p, e, -e.size)
	}
	u.withOverhead(e.kind, e, -(e.size + e.kind.overhead))
}

// level changes the live bytes of a part.
func (u *Usage) level(k *Kind, p *Part, e *event, change uint64) {
	if !p.summed {
		p.summed = true
		p.Live = k.Sum
		name := k.Type
		if p != k.all {
			p.Live = newCurve(u.options.Columns, u.span.Width())
			if !u.options.Legacy {
				name += " (" + p.Context.Name + ")"
			}
		}
		p.series.live = u.sink.Begin(Totals, heading(name))
	}
	p.bytes += change
	u.point(p.Live, p.series.live, e.at, e.place, p.bytes)
	if e.born == (life{}) { // the original considers only allocations
		u.mostLive = max(u.mostLive, p.bytes)
	}
}

func (u *Usage) withOverhead(k *Kind, e *event, change uint64) {
	if k.overhead == 0 {
		return
	}
	k.live += change
	u.mostLive = max(u.mostLive, k.live)
	u.point(k.Overhead, k.series.overhead, e.at, e.place, k.live)
}

// point adds to a curve and its series.
func (u *Usage) point(c *Curve, series int, at, place int64, v uint64) {
	c.add(place, v)
	u.sink.Point(series, at, v)
}

// totalsVoid records that nothing is live any more.
func (u *Usage) totalsVoid(k *Kind, at, place int64) {
	k.Live = live.Amount{}
	if k.Sum == nil {
		return
	}
	for _, p := range k.Everything() {
		if p.summed && p.bytes != 0 {
			p.bytes = 0
			u.point(p.Live, p.series.live, at, place, 0)
		}
	}
	if k.live != 0 {
		k.live = 0
		u.point(k.Overhead, k.series.overhead, at, place, 0)
	}
}

// totalsEnd writes the marks of the peaks.
func (u *Usage) totalsEnd() {
	for _, k := range u.Kinds() {
		if k.Peak.Live.Blocks == 0 && !u.options.Legacy {
			continue // only blocks of size 0
		}
		u.mark(Totals, k.Type+"(peak:"+u.text(k.Peak.At)+")", k.Peak.At, u.mostLive)
	}
}

// mark writes a vertical line at a position, slightly higher than the highest
// value.
func (u *Usage) mark(r Report, name string, at int64, most uint64) {
	n := u.sink.Begin(r, heading(name))
	u.sink.Point(n, at, 0)
	u.sink.Point(n, at, higher(most))
}

// higher returns v plus a twentieth, rounded down.
func higher(v uint64) uint64 { return v + v/20 }
