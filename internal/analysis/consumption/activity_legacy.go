package consumption

// legacyPart is the original's state of a part: the calls in the slice and
// their sum.
type legacyPart struct {
	calls []legacyCall
	sum   step
}

type legacyCall struct {
	at    int64
	size  uint64
	alloc bool
}

// addLegacy counts a call like the original: the first call after the time
// of the next value records that value, only for its own resource and context,
// and advances by one step, however late it is. The peaks then include that
// call, too.
func (a *activity) addLegacy(e *event, alloc bool) {
	before := a.now
	for i, p := range e.kind.in(a.contexts, e.context) {
		if p.legacy == nil {
			p.legacy = new(legacyPart)
		}
		a.begin(e.kind, p)
		if a.now == 0 {
			a.now = e.at
		}
		if next := later(a.now, a.step); next <= e.at {
			p.legacy.leave(next - a.width)
			a.value(p, next, p.legacy.sum)
			a.now = next
		}
		p.legacy.sum.add(e, alloc)
		p.legacy.calls = append(p.legacy.calls, legacyCall{e.at, e.size, alloc})
		if i == 0 && a.now != before {
			e.kind.Rates.see(p.legacy.sum, a.now)
		}
	}
}

// leave removes the calls before a slice.
func (l *legacyPart) leave(begin int64) {
	n := 0
	for ; n < len(l.calls) && l.calls[n].at < begin; n++ {
		if c := &l.calls[n]; c.alloc {
			l.sum.bytes -= c.size
			l.sum.allocs--
		} else {
			l.sum.frees--
		}
	}
	l.calls = l.calls[n:]
}

// finishLegacy records the last value of each part.
func (a *activity) finishLegacy() {
	at := later(a.now, a.step)
	for _, k := range a.Kinds() {
		if k.all == nil || k.all.legacy == nil {
			continue
		}
		for _, p := range k.Everything() {
			if p.legacy != nil {
				p.legacy.leave(at - a.width)
				a.value(p, at, p.legacy.sum)
			}
		}
		k.Rates.see(k.all.legacy.sum, at)
	}
}
