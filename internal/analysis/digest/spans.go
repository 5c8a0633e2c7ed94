package digest

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/trace"
)

// SpanKind is what is missing during a Span.
type SpanKind uint8

// The kinds of spans.
const (
	Paused SpanKind = iota // nothing was recorded
	Lossy                  // events were lost
	spanKinds
)

// Span is a time of the recording in which calls are missing. Times are in nanoseconds since the
// first call, and may be negative.
type Span struct {
	Kind     SpanKind
	From, To int64
	Count    uint64 // of pauses or lost events
}

// Level is an amount of memory at a time, in nanoseconds since the first call.
type Level struct {
	Time  int64
	Bytes uint64
}

// Recording is the extent of a recording in time, and what happened in it. Times are in nanoseconds
// since the first call.
type Recording struct {
	Begin, End int64 // at most 0, and at least the time of the last call
	Spans      []Span
	RSS        []Level // resident memory, as often as it was read
	System     []Level // memory that the allocator got from the system since the beginning
}

const (
	maxSpans  = 1 << 14 // kept until the end; later ones join the last of their kind
	maxLevels = 1 << 10 // if there are more, only some are kept
)

// recording collects a Recording. Its times are those of Clock.Unwrapped.
type recording struct {
	begin, end int64
	timed      bool // begin and end are set
	spans      []Span
	last       [spanKinds]int // 1 + the index of the last span
	rss        levels
	system     levels
	grown      uint64
}

// add processes a record that is not a call.
func (k *recording) add(r *trace.Record, clock *timeline.Clock) {
	if r.Time == 0 {
		return
	}
	now := clock.Unwrapped(r.Time)
	switch r.Kind {
	case trace.KindHeader, trace.KindProcess, trace.KindExit, trace.KindEnd, trace.KindExec, trace.KindHeapInfo:
	case trace.KindRSS:
		k.rss.add(Level{now, r.RSS.Bytes})
	case trace.KindHeapGrow:
		if !r.HeapGrow.Internal {
			k.grown += r.HeapGrow.Size
			k.system.add(Level{now, k.grown})
		}
	case trace.KindLost:
		k.lost(&r.Lost, now, clock)
	default:
		return
	}
	if !k.timed {
		k.begin, k.end, k.timed = now, now, true
	}
	k.begin, k.end = min(k.begin, now), max(k.end, now)
}

// first is called at the first call with a time.
func (k *recording) first(at int64, clock *timeline.Clock) {
	all := []*int64{&k.begin, &k.end}
	for _, of := range [...][]Level{k.rss.all, k.system.all} {
		for i := range of {
			all = append(all, &of[i].Time)
		}
	}
	for i := range k.spans {
		all = append(all, &k.spans[i].From, &k.spans[i].To)
	}
	for _, t := range all {
		*t = clock.Before(*t, at)
	}
}

func (k *recording) lost(l *trace.Lost, now int64, clock *timeline.Clock) {
	s := Span{Kind: Lossy, From: now, To: now, Count: l.Events()}
	if l.Since != 0 {
		s.From = min(now, clock.Unwrapped(l.Since))
	}
	if l.Gap() {
		s.Kind = Paused
	}
	if s.Count > 0 {
		k.span(s)
	}
}

// span adds a span.
func (k *recording) span(s Span) {
	if n := k.last[s.Kind]; n > 0 && len(k.spans) >= maxSpans {
		k.spans[n-1] = joined(k.spans[n-1], s)
		return
	}
	k.spans = append(k.spans, s)
	k.last[s.Kind] = len(k.spans)
}

// joined returns the span from the beginning of one to the end of another.
func joined(a, b Span) Span {
	return Span{Kind: a.Kind, From: min(a.From, b.From), To: max(a.To, b.To), Count: a.Count + b.Count}
}

// finish returns the recording. first is the time of the first call, duration the time from it to
// the last one. Spans of a kind that are close together, compared with the recording, are one.
func (k *recording) finish(clock *timeline.Clock, duration int64) Recording {
	out := Recording{End: duration}
	if k.timed {
		out.Begin, out.End = min(0, clock.FromFirst(k.begin)), max(duration, clock.FromFirst(k.end))
	}
	out.RSS, out.System = k.rss.finish(clock), k.system.finish(clock)
	for i := range k.spans {
		s := &k.spans[i]
		s.From, s.To = clock.FromFirst(s.From), clock.FromFirst(s.To)
	}
	slices.SortStableFunc(k.spans, func(a, b Span) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.From, b.From)) })
	apart := (out.End - out.Begin) / 512
	for _, s := range k.spans {
		if n := len(out.Spans); n > 0 && out.Spans[n-1].Kind == s.Kind && s.From-out.Spans[n-1].To <= apart {
			out.Spans[n-1] = joined(out.Spans[n-1], s)
			continue
		}
		out.Spans = append(out.Spans, s)
	}
	return out
}

// levels collects at most maxLevels levels.
type levels struct {
	all  []Level
	step int // every step-th level is kept, and the last one
	n    int
	last Level
}

func (l *levels) add(x Level) {
	l.step = max(l.step, 1)
	if l.n%l.step == 0 {
		if len(l.all) == maxLevels {
			for i := range maxLevels / 2 {
				l.all[i] = l.all[2*i]
			}
			l.all, l.step = l.all[:maxLevels/2], 2*l.step
		}
		l.all = append(l.all, x)
	}
	l.n++
	l.last = x
}

func (l *levels) finish(clock *timeline.Clock) (out []Level) {
	if n := len(l.all); n > 0 && l.all[n-1] != l.last {
		l.all = append(l.all, l.last)
	}
	for _, x := range l.all {
		out = append(out, Level{clock.FromFirst(x.Time), x.Bytes})
	}
	return out
}
