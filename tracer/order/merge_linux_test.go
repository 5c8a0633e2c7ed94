package order

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func times(events []Event) []uint64 {
	var out []uint64
	for _, e := range events {
		out = append(out, e.Time)
	}
	return out
}

func TestMergeOrdersByTimeUpToTheWatermark(t *testing.T) {
	tests := map[string]struct {
		queues    [][]uint64
		watermark uint64
		want      []uint64
	}{
		"empty":               {queues: [][]uint64{{}, {}}, watermark: 10},
		"one ring":            {queues: [][]uint64{{1, 2, 3}}, watermark: 2, want: []uint64{1, 2}},
		"two rings":           {queues: [][]uint64{{1, 4, 5}, {2, 3, 6}}, watermark: 5, want: []uint64{1, 2, 3, 4, 5}},
		"equal times":         {queues: [][]uint64{{1, 2}, {2, 3}}, watermark: 9, want: []uint64{1, 2, 2, 3}},
		"watermark holds all": {queues: [][]uint64{{5}, {6}}, watermark: 4},
		// A program was preempted between reserving its place and reading the time: the
		// later place has the earlier time.
		"inversion within a ring": {queues: [][]uint64{{10, 5, 12}, {7, 11}}, watermark: 20, want: []uint64{5, 7, 10, 11, 12}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := Merger{Queues: make([]Queue, len(test.queues))}
			for i, q := range test.queues {
				for _, at := range q {
					m.Queues[i].Push(&Event{Time: at})
				}
			}
			got, more := m.Merge(nil, test.watermark, 1000)
			if more {
				t.Error("Merge reports that more is ready although there was room")
			}
			if !slices.Equal(times(got), test.want) {
				t.Errorf("got %v, want %v", times(got), test.want)
			}
			if m.Late != 0 {
				t.Errorf("%d late events", m.Late)
			}
		})
	}
}

func TestMergeKeepsToItsRoom(t *testing.T) {
	m := Merger{Queues: make([]Queue, 2)}
	for i := range uint64(10) {
		m.Queues[i%2].Push(&Event{Time: i})
	}
	var all []Event
	for more := true; more; {
		var part []Event
		part, more = m.Merge(nil, 100, 3)
		if len(part) > 3 {
			t.Fatalf("merge returned %d events for a room of 3", len(part))
		}
		all = append(all, part...)
	}
	if !slices.Equal(times(all), []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("got %v", times(all))
	}
}

func TestMergeCountsLateEvents(t *testing.T) {
	m := Merger{Queues: make([]Queue, 2)}
	m.Queues[0].Push(&Event{Time: 10})
	m.Merge(nil, 20, 10)
	m.Queues[1].Push(&Event{Time: 9})
	m.Queues[1].Push(&Event{Time: 11})
	m.Queues[1].Push(&Event{Time: 8, Kind: KindSide}) // not counted: record.Stream decides
	got, _ := m.Merge(nil, 20, 10)
	if !slices.Equal(times(got), []uint64{8, 9, 11}) || m.Late != 1 {
		t.Errorf("got %v with %d late, want [8 9 11] with 1", times(got), m.Late)
	}
}

// For random rings with random inversions, the merged order is the sorted one as long as
// the watermark is correct.
func TestMergeRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		m := Merger{Queues: make([]Queue, 1+rnd.IntN(5))}
		var want, got []uint64
		now := uint64(0)
		for range 50 {
			for range rnd.IntN(20) {
				at := now + rnd.Uint64N(100)
				m.Queues[rnd.IntN(len(m.Queues))].Push(&Event{Time: at})
				want = append(want, at)
			}
			now += 100
			out, _ := m.Merge(nil, now-1, 1<<20)
			got = append(got, times(out)...)
			m.Compact()
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("merged %v\nwant %v", got, want)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	const rings, each = 2, 4096
	m := Merger{Queues: make([]Queue, rings)}
	out := make([]Event, 0, rings*each)
	var now uint64
	b.ReportAllocs()
	for b.Loop() {
		for i := range uint64(rings * each) {
			now++
			m.Queues[(i/7)%rings].Push(&Event{Time: now})
		}
		out, _ = m.Merge(out[:0], now, rings*each)
		m.Compact()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rings*each), "ns/event")
}
