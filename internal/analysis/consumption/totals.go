package consumption

import "rtrace-bpf/internal/live"

// totals is the report of what is allocated and not freed.
type totals struct {
	*plot
	highest uint64 // value of a curve; the marks of peaks are a bit higher
}

// alloc counts a block that began.
func (t *totals) alloc(e *event) {
	k := e.kind
	if k.Sum == nil {
		k.Sum, k.Allocs = t.curve(), t.curve()
		if k.padded.each > 0 {
			k.Overhead = t.curve()
			k.padded.series = t.sink.Begin(Totals, heading(k.Type+" overhead"))
		}
		k.allocs = t.sink.Begin(Totals, heading(k.Type+": total allocs"))
	}
	k.Allocs.add(e.place, k.Allocated.Blocks)
	t.sink.Point(k.allocs, e.at, k.Allocated.Blocks)
	for _, p := range k.in(t.contexts, e.context) {
		t.level(k, p, e, e.size)
	}
	t.withOverhead(k, e, e.size+k.padded.each)
}

// free counts a block that ended.
func (t *totals) free(e *event) {
	mask := e.born.context
	if t.options.Legacy {
		mask = e.context
	}
	for _, p := range e.kind.in(t.contexts, mask) {
		t.level(e.kind, p, e, -e.size)
	}
	t.withOverhead(e.kind, e, -(e.size + e.kind.padded.each))
}

// level changes the live bytes of a part.
func (t *totals) level(k *Kind, p *Part, e *event, change uint64) {
	if !p.summed {
		p.summed = true
		p.Live = k.Sum
		name := k.Type
		if p != k.all {
			p.Live = t.curve()
			if !t.options.Legacy {
				name += " (" + p.Context.Name + ")"
			}
		}
		p.series.live = t.sink.Begin(Totals, heading(name))
	}
	p.bytes += change
	t.point(p.Live, p.series.live, e.at, e.place, p.bytes)
	if e.born == (life{}) { // the original considers only allocations
		t.highest = max(t.highest, p.bytes)
	}
}

func (t *totals) withOverhead(k *Kind, e *event, change uint64) {
	if k.padded.each == 0 {
		return
	}
	k.padded.live += change
	t.highest = max(t.highest, k.padded.live)
	t.point(k.Overhead, k.padded.series, e.at, e.place, k.padded.live)
}

// void records that nothing is live any more.
func (t *totals) void(k *Kind, at, place int64) {
	k.Live = live.Amount{}
	if k.Sum == nil {
		return
	}
	for _, p := range k.Everything() {
		if p.summed && p.bytes != 0 {
			p.bytes = 0
			t.point(p.Live, p.series.live, at, place, 0)
		}
	}
	if k.padded.live != 0 {
		k.padded.live = 0
		t.point(k.Overhead, k.padded.series, at, place, 0)
	}
}

// finish writes the marks of the peaks.
func (t *totals) finish() {
	for _, k := range t.Kinds() {
		if k.Peak.Live.Blocks == 0 && !t.options.Legacy {
			continue // only blocks of size 0
		}
		t.mark(Totals, k.Type+"(peak:"+t.text(k.Peak.At)+")", k.Peak.At, t.highest)
	}
}
