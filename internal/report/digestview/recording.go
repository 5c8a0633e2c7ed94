package digestview

import (
	"rtrace-bpf/internal/analysis/digest"
)

// span is a time in which calls are missing.
type span struct {
	Kind  string `json:"kind"` // a name of spanKinds
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Count uint64 `json:"count"`
}

// spanKinds are the names of the kinds of spans in a page.
var spanKinds = map[digest.SpanKind]string{digest.Paused: "paused", digest.Lossy: "lossy"}

// recording adds the extent of the recording, what is missing from it, and the memory of the process.
func (b *builder) recording(r *digest.Result) {
	k := &r.Recording
	b.Spans, b.RSS, b.System = []span{}, [][]int64{}, [][]int64{}
	if r.Duration == 0 {
		return
	}
	b.From, b.To = k.Begin, max(k.End, r.Duration)
	if at := began(r); at != 0 {
		b.Wall = at / 1e6
	}
	for _, s := range k.Spans {
		b.Spans = append(b.Spans, span{spanKinds[s.Kind], s.From, s.To, s.Count})
	}
	b.RSS, b.System = levels(k.RSS), levels(k.System)
}

// levels returns levels as pairs of a time and bytes.
func levels(all []digest.Level) [][]int64 {
	out := make([][]int64, 0, len(all))
	for _, l := range all {
		out = append(out, []int64{l.Time, int64(min(l.Bytes, 1<<62))})
	}
	return out
}

// began returns the wall-clock time at which the recording began, in nanoseconds since 1970; 0 if it
// is unknown.
func began(r *digest.Result) int64 {
	if r.Process.WallTime != 0 {
		return r.Process.WallTime
	}
	if h := &r.Header; h.WallTime != 0 && r.FirstTime != 0 {
		return r.FirstTime - h.ClockTime + h.WallTime + r.Recording.Begin
	}
	return 0
}

// largest returns the index of the resource to show first: the one with the most bytes at its peak
// or, if no size is in bytes, with the most blocks.
func largest(all []*digest.Resource) (most int) {
	size := func(of *digest.Resource) (bytes, blocks uint64) {
		if inBytes(of) && sized(of) {
			bytes = of.Peak.Bytes
		}
		return bytes, of.PeakBlocks
	}
	for i := range all {
		bytes, blocks := size(all[i])
		if b, n := size(all[most]); bytes > b || bytes == b && blocks > n {
			most = i
		}
	}
	return most
}
