package rss

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/trace"
)

const mib = 1 << 20

// The growth lies elsewhere if the blocks account for less than half of it and
// the rest is large.
func TestElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		start, end, blocks, bytes uint64
		want                      bool
	}{
		"no growth":            {100 * mib, 100 * mib, 0, 0, false},
		"shrunk":               {100 * mib, 10 * mib, 0, 0, false},
		"in mappings":          {100 * mib, 612 * mib, 10, 3 * mib, true},
		"in blocks":            {100 * mib, 612 * mib, 500, 500 * mib, false},
		"blocks not touched":   {100 * mib, 200 * mib, 5, 4096 * mib, false},
		"little":               {100 * mib, 131 * mib, 0, 0, false},
		"just enough":          {100 * mib, 132 * mib, 0, 0, true},
		"large, but less half": {0, 1000 * mib, 1, 500 * mib, false},
		"large, over half":     {0, 1000 * mib, 1, 499 * mib, true},
		"small blocks":         {0, 1000 * mib, 31 * mib, 31 * mib, false}, // 1 byte each, which malloc rounds up to 32
		"overflow":             {0, 1000 * mib, 1 << 62, 1 << 63, false},
	} {
		if got := elsewhere(test.start, test.end, test.blocks, test.bytes); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestGrowth(t *testing.T) {
	head := []trace.Record{
		{Kind: trace.KindHeader},
		{Kind: trace.KindProcess, PID: 7},
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
	}
	at := func(bytes uint64) trace.Record {
		return trace.Record{Kind: trace.KindRSS, RSS: trace.RSS{Bytes: bytes}}
	}
	const begin = "RSS grew by 512.0 MiB, blocks allocated and still live by 3.0 MiB: the growth is not in the traced blocks."
	for name, test := range map[string]struct {
		records []trace.Record
		want    *Growth
	}{
		"unknown":    {nil, nil},
		"start only": {[]trace.Record{at(mib)}, nil},
		"little":     {[]trace.Record{at(mib), at(5 * mib)}, &Growth{Start: mib, End: 5 * mib}},
		"much": {[]trace.Record{at(mib), at(513 * mib)}, &Growth{
			Start: mib, End: 513 * mib, Elsewhere: true,
			Verdict: begin + " Next: rtrace-bpf -p 7 -e memory:mmap:shmposix --heap-info, then rtrace info on that trace",
		}},
		"ended": {[]trace.Record{at(mib), at(513 * mib), {Kind: trace.KindExit, Exit: trace.Exit{Process: true}}}, &Growth{
			Start: mib, End: 513 * mib, Elsewhere: true,
			Verdict: begin + " Next: rtrace-bpf -e memory:mmap:shmposix --heap-info -- COMMAND, then rtrace info on that trace",
		}},
		"with the heap": {[]trace.Record{at(mib), {Kind: trace.KindHeapInfo}, at(513 * mib)}, &Growth{
			Start: mib, End: 513 * mib, Elsewhere: true,
			Verdict: begin + " Next: rtrace-bpf -p 7 -e memory:mmap:shmposix, then rtrace info on that trace",
		}},
		"with all": {
			[]trace.Record{{Kind: trace.KindResource, Resource: trace.Resource{ID: 2, Type: "mmap"}}, at(mib), {Kind: trace.KindHeapInfo}, at(513 * mib)},
			&Growth{
				Start: mib, End: 513 * mib, Elsewhere: true,
				Verdict: begin + " Next: rtrace leaks --resource mmap shows mappings, rtrace info the free memory within malloc's heap (fordblks)",
			},
		},
		"incomplete": {
			[]trace.Record{
				at(mib),
				{Kind: trace.KindLost, Lost: trace.Lost{Count: 3, Reason: "ring full"}},
				{Kind: trace.KindLost, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused}},
				at(513 * mib),
			},
			&Growth{
				Start: mib, End: 513 * mib, Elsewhere: true,
				Verdict: begin + " Blocks may be missing from the trace: 3 events were lost, and the recording was paused." +
					" Next: rtrace-bpf -p 7 -e memory:mmap:shmposix --heap-info, then rtrace info on that trace",
			},
		},
		"since exec":   {[]trace.Record{at(600 * mib), {Kind: trace.KindExec}, at(mib), at(5 * mib)}, &Growth{Start: mib, End: 5 * mib}},
		"exec at last": {[]trace.Record{at(mib), {Kind: trace.KindExec}, at(600 * mib)}, nil},
		"sampled":      {[]trace.Record{{Kind: trace.KindResource, Resource: trace.Resource{Type: "memory", Sampled: true}}, at(mib), at(513 * mib)}, nil},
		"two traces":   {[]trace.Record{at(mib), {Kind: trace.KindHeader}, at(513 * mib)}, nil},
	} {
		var a Account
		for _, r := range append(head, test.records...) {
			a.Add(&r)
		}
		if test.want != nil {
			test.want.Live = Live{Blocks: 9, Bytes: 3 * mib}
		}
		if d := cmp.Diff(test.want, a.Growth(Live{Blocks: 9, Bytes: 3 * mib})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// Unknown blocks may explain the growth, so no verdict is given.
func TestGrowthThatUnknownBlocksMayExplain(t *testing.T) {
	var a Account
	for _, r := range []trace.Record{
		{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}},
		{Kind: trace.KindRSS, RSS: trace.RSS{Bytes: mib}},
		{Kind: trace.KindRSS, RSS: trace.RSS{Bytes: 513 * mib}},
	} {
		a.Add(&r)
	}
	live := Live{Blocks: 1, Bytes: mib, UnknownBlocks: 1, UnknownBytes: 400 * mib}
	if g := a.Growth(live); g.Elsewhere || g.Live != live {
		t.Errorf("%+v", g)
	}
}
