package timeline_test

import (
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// random returns a trace of n calls of three threads and five functions, with
// frees of blocks that are not live and allocations at addresses of live ones.
func random(rng *rand.Rand, n int) []*trace.Record {
	var all []*trace.Record
	now := int64(1000)
	for range n {
		now += rng.Int64N(50)
		if rng.IntN(20) == 0 {
			now += 5000
		}
		r := &trace.Record{Kind: trace.KindCall, Time: now, TID: 1 + int32(rng.IntN(3))}
		c := &r.Call
		c.ID = 16 * (1 + rng.Uint64N(40))
		c.Caller.Function = fmt.Sprintf("f%d", rng.IntN(5))
		switch rng.IntN(5) {
		case 0, 1:
			c.Op, c.Size = trace.OpAlloc, rng.Uint64N(1000)
		case 2, 3:
			c.Op = trace.OpFree
		case 4:
			c.Op, c.Size, c.OldID = trace.OpMove, rng.Uint64N(1000), 16*rng.Uint64N(40)
		}
		all = append(all, r)
		switch rng.IntN(60) {
		case 0:
			all = append(all, &trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: 16, Size: 4096}})
		case 1:
			all = append(all, &trace.Record{Kind: trace.KindHeapGrow, HeapGrow: trace.HeapGrow{Address: 16, Size: 512, Internal: true}})
		case 2:
			all = append(all, &trace.Record{Kind: trace.KindExec})
		}
	}
	return all
}

// block is a live block of the naive model.
type block struct {
	size, event uint64
	time        int64
	tid         int32
	function    string
}

// state is the naive model after an event.
type state struct {
	time             int64
	live             map[uint64]block
	reserved         uint64
	allocated, freed []uint64 // sizes
	lives            []uint64 // of freed blocks, in events
	times            []uint64 // of freed blocks, in nanoseconds
}

func (s *state) bytes() (n uint64) {
	for _, b := range s.live {
		n += b.size
	}
	return n
}

// naive processes a trace event by event with a copy of everything.
func naive(records []*trace.Record) []state {
	var all []state
	current := map[uint64]block{}
	var reserved uint64
	for _, r := range records {
		switch r.Kind {
		case trace.KindHeapGrow:
			if !r.HeapGrow.Internal {
				reserved += r.HeapGrow.Size
				if len(all) > 0 {
					all[len(all)-1].reserved = reserved
				}
			}
			continue
		case trace.KindExec:
			current = map[uint64]block{}
			continue
		}
		s := state{time: r.Time - records[0].Time, reserved: reserved}
		c := &r.Call
		event := uint64(len(all) + 1)
		b := block{c.Size, event, s.time, r.TID, c.Caller.Function}
		end := func(id uint64) (block, bool) {
			old, ok := current[id]
			if ok {
				s.freed = append(s.freed, old.size)
				s.lives = append(s.lives, event-old.event)
				s.times = append(s.times, uint64(s.time-old.time))
				delete(current, id)
			}
			return old, ok
		}
		switch c.Op {
		case trace.OpFree:
			end(c.ID)
		case trace.OpMove:
			if old, ok := end(c.OldID); ok {
				b.event, b.time = old.event, old.time
			}
			fallthrough
		case trace.OpAlloc:
			end(c.ID)
			current[c.ID] = b
			s.allocated = append(s.allocated, c.Size)
		}
		s.live = maps.Clone(current)
		all = append(all, s)
	}
	return all
}

func amount(sizes []uint64) (a live.Amount) {
	for _, n := range sizes {
		a.Blocks++
		a.Bytes += n
	}
	return a
}

// Every point, total, lifetime and group agrees with a model that keeps a copy
// of everything at every event.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		records := random(rng, 1+rng.IntN(700))
		states := naive(records)
		for _, axis := range []timeline.Axis{timeline.ByEvent, timeline.ByTime, timeline.ByTimeIfKnown} {
			o := timeline.Options{Axis: axis, Points: 1 + rng.IntN(100), Threads: true, Functions: true}
			tl := timeline.New(o)
			for _, r := range records {
				tl.Add(r)
			}
			name := fmt.Sprintf("seed %d, axis %d, %d points, %d events", seed, axis, o.Points, len(states))
			if axis == timeline.ByTimeIfKnown {
				axis = timeline.ByEvent
				if states[len(states)-1].time > 0 {
					axis = timeline.ByTime
				}
				if o.Axis = tl.Axis(); o.Axis != axis {
					t.Errorf("%s: the axis is %d, want %d", name, o.Axis, axis)
				}
			}
			if width := fmt.Sprint(tl.Width()); strings.Trim(width[1:], "0") != "" || !strings.Contains("125", width[:1]) {
				t.Errorf("%s: the width %s is not round", name, width)
			}
			comparePoints(t, name, tl, states, &o)
			compareTotals(t, name, tl, states)
			compareLifetimes(t, name, tl, states, axis)
			compareGroups(t, name, tl, states)
		}
	}
}

// A trace without times is divided by events, and the first call has a time of day if the header
// relates it to the clock.
func TestTimesOfDay(t *testing.T) {
	for name, tt := range map[string]struct {
		header trace.Header
		time   int64
		want   int64
	}{
		"no times":     {trace.Header{}, 0, 0},
		"no wall time": {trace.Header{Clock: trace.ClockMonotonic}, 5000, 0},
		"monotonic":    {trace.Header{Clock: trace.ClockMonotonic, WallTime: 1_000_000, ClockTime: 4000}, 5000, 1_001_000},
		"wall":         {trace.Header{Clock: trace.ClockWall}, 1_001_000, 1_001_000},
	} {
		tl := timeline.New(timeline.Options{Axis: timeline.ByTimeIfKnown})
		tl.Add(&trace.Record{Kind: trace.KindHeader, Header: tt.header})
		for i := range int64(3) {
			r := trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: trace.OpAlloc, ID: uint64(i) + 1, Size: 1}}
			if tt.time != 0 {
				r.Time = tt.time + 10*i
			}
			tl.Add(&r)
		}
		if got := tl.Totals().Began; got != tt.want {
			t.Errorf("%s: the first call was at %d, want %d", name, got, tt.want)
		}
		if byTime := tl.Axis() == timeline.ByTime; byTime != (tt.time != 0) || len(tl.Points()) == 0 {
			t.Errorf("%s: by time: %v, %d points", name, byTime, len(tl.Points()))
		}
	}
}

func comparePoints(t *testing.T, name string, tl *timeline.Timeline, states []state, o *timeline.Options) {
	t.Helper()
	points := tl.Points()
	if len(points) > o.Points || len(points) < min(len(states), o.Points)/3 && o.Axis == timeline.ByEvent {
		t.Errorf("%s: %d points", name, len(points))
	}
	next := 0
	var last state
	for i, p := range points {
		if p.X != uint64(i)*tl.Width() {
			t.Fatalf("%s: point %d is at %d, width %d", name, i, p.X, tl.Width())
		}
		want := timeline.Point{X: p.X, Time: int64(p.X)}
		carried := func() {
			n, bytes := uint64(len(last.live)), last.bytes()
			want.Bytes, want.Blocks = timeline.Range{Min: bytes, Max: bytes, Last: bytes}, timeline.Range{Min: n, Max: n, Last: n}
		}
		carried()
		for ; next < len(states); next++ {
			s := states[next]
			x := uint64(next)
			if o.Axis == timeline.ByTime {
				x = uint64(s.time)
			}
			if x >= p.X+tl.Width() {
				break
			}
			last = s
			if want.Events == 0 {
				carried()
				want.First, want.Time = uint64(next+1), s.time
			}
			want.Events++
			want.Last = uint64(next + 1)
			n, bytes := uint64(len(s.live)), s.bytes()
			want.Bytes = timeline.Range{Min: min(want.Bytes.Min, bytes), Max: max(want.Bytes.Max, bytes), Last: bytes}
			want.Blocks = timeline.Range{Min: min(want.Blocks.Min, n), Max: max(want.Blocks.Max, n), Last: n}
			a, f := amount(s.allocated), amount(s.freed)
			want.Allocated.Blocks += a.Blocks
			want.Allocated.Bytes += a.Bytes
			want.Freed.Blocks += f.Blocks
			want.Freed.Bytes += f.Bytes
		}
		want.Reserved = last.reserved
		if diff := cmp.Diff(want, p); diff != "" {
			t.Fatalf("%s: point %d (-want +got)\n%s", name, i, diff)
		}
	}
	if next != len(states) {
		t.Errorf("%s: the points end after %d events", name, next)
	}
}

func compareTotals(t *testing.T, name string, tl *timeline.Timeline, states []state) {
	t.Helper()
	got := tl.Totals()
	want := timeline.Totals{
		Events: uint64(len(states)), Duration: states[len(states)-1].time,
		Internal: got.Internal, Unmatched: got.Unmatched, Replaced: got.Replaced, Reserved: got.Reserved,
	}
	want.Reserved.Bytes = states[len(states)-1].reserved
	for i := range states {
		s := &states[i]
		a, f := amount(s.allocated), amount(s.freed)
		want.Allocated.Blocks += a.Blocks
		want.Allocated.Bytes += a.Bytes
		want.Freed.Blocks += f.Blocks
		want.Freed.Bytes += f.Bytes
		for _, n := range s.allocated {
			want.Largest = max(want.Largest, n)
			if n > 0 && (n < want.Smallest || want.Smallest == 0) {
				want.Smallest = n
			}
		}
		if n := uint64(len(s.live)); n > want.PeakBlocks {
			want.PeakBlocks, want.PeakBlocksEvent = n, uint64(i+1)
		}
		if n := s.bytes(); n > want.PeakBytes {
			want.PeakBytes, want.PeakBytesEvent = n, uint64(i+1)
		}
	}
	end := &states[len(states)-1]
	want.Live = live.Amount{Blocks: uint64(len(end.live)), Bytes: end.bytes()}
	if got.Live.Blocks == 0 { // an exec after the last event
		want.Live = live.Amount{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: totals (-want +got)\n%s", name, diff)
	}
	var highest uint64
	for _, p := range tl.Points() {
		highest = max(highest, p.Bytes.Max)
	}
	if highest != got.PeakBytes {
		t.Errorf("%s: the highest point is %d, the peak %d", name, highest, got.PeakBytes)
	}
}

func compareLifetimes(t *testing.T, name string, tl *timeline.Timeline, states []state, axis timeline.Axis) {
	t.Helper()
	want := map[int]live.Amount{}
	for i := range states {
		lives := states[i].lives
		if axis == timeline.ByTime {
			lives = states[i].times
		}
		for j, l := range lives {
			a := want[bits.Len64(l)]
			a.Blocks++
			a.Bytes += states[i].freed[j]
			want[bits.Len64(l)] = a
		}
	}
	bins := tl.Lifetimes()
	if len(bins) > 0 && bins[len(bins)-1].Blocks == 0 {
		t.Errorf("%s: the last bin is empty", name)
	}
	for i, b := range bins {
		if b.Amount != want[i] || bits.Len64(b.From) != i || bits.Len64(b.To) != i || bits.Len64(b.To+1) == i {
			t.Errorf("%s: lifetimes %+v, want %+v in bin %d", name, b, want[i], i)
		}
		delete(want, i)
	}
	if len(want) > 0 {
		t.Errorf("%s: bins are missing: %v", name, want)
	}
}

func compareGroups(t *testing.T, name string, tl *timeline.Timeline, states []state) {
	t.Helper()
	peak := tl.Totals().PeakBytesEvent
	for _, g := range slices.Concat(tl.Threads(), tl.Functions()) {
		mine := func(b block) bool {
			return uint64(b.tid) == g.Thread || b.function == g.Frame.Function && g.Thread == 0
		}
		sum := func(s *state) (a live.Amount) {
			for _, b := range s.live {
				if mine(b) {
					a.Blocks++
					a.Bytes += b.size
				}
			}
			return a
		}
		var most uint64
		for i := range states {
			most = max(most, sum(&states[i]).Bytes)
		}
		if g.Peak != most {
			t.Errorf("%s: %v: at most %d, want %d", name, g, g.Peak, most)
		}
		var at live.Amount
		if peak > 0 {
			at = sum(&states[peak-1])
		}
		if g.AtPeak != at {
			t.Errorf("%s: %+v at the peak, want %+v", name, g, at)
		}
		if end := sum(&states[len(states)-1]); g.Live != end && tl.Totals().Live.Blocks > 0 {
			t.Errorf("%s: %+v at the end, want %+v", name, g, end)
		}
	}
}
