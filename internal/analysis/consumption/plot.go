package consumption

// plot is what all reports share: the axis, the contexts, the types of resources, and where
// the numbers go.
type plot struct {
	options  Options
	span     Span
	contexts []Context
	sink     Sink
	kinds    []*Kind // in the order of their ids
}

// Span returns the part of the trace that the reports cover. The caller must
// not change it.
func (p *plot) Span() *Span { return &p.span }

// Kinds returns the types of resources that had calls, in the order in which
// they were declared.
func (p *plot) Kinds() []*Kind {
	var used []*Kind
	for _, k := range p.kinds {
		if k.used {
			used = append(used, k)
		}
	}
	return used
}

// Contexts returns the contexts that the trace declares, in the order of their ids.
func (p *plot) Contexts() []Context { return p.contexts }

// text formats a position on the axis of the reports in the way of the
// original.
func (p *plot) text(at int64) string { return p.span.Text(at) }

// length formats a length of the axis.
func (p *plot) length(n int64) string { return p.span.Length(n) }

// curve returns an empty curve over the whole axis.
func (p *plot) curve() *Curve { return newCurve(p.options.Columns, p.span.Width()) }

// point adds to a curve and its series.
func (p *plot) point(c *Curve, series int, at, place int64, v uint64) {
	c.add(place, v)
	p.sink.Point(series, at, v)
}

// mark writes a vertical line at a position, slightly higher than the highest
// value.
func (p *plot) mark(r Report, name string, at int64, most uint64) {
	n := p.sink.Begin(r, heading(name))
	p.sink.Point(n, at, 0)
	p.sink.Point(n, at, higher(most))
}

// higher returns v plus a twentieth, rounded down.
func higher(v uint64) uint64 { return v + v/20 }
