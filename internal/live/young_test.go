package live

import (
	"testing"
	"time"
)

func TestUsualLifetime(t *testing.T) {
	for _, tt := range []struct {
		name string
		ends []int64 // each 100 times
		more []int64
		want time.Duration
	}{
		{"nothing was freed", nil, nil, 0},
		{"too few were freed", nil, []int64{5, 5, 5}, 0},
		{"no times", []int64{0}, nil, 1},
		{"all alike", []int64{2e9}, nil, 3 * time.Second},
		{"a step begins with its bound", []int64{3e9}, nil, 10 * time.Second},
		{"one of a hundred does not count", []int64{5}, []int64{1e12}, 10},
		{"two do", []int64{5}, []int64{1e12, 1e12}, 3000 * time.Second},
		{"half of them", []int64{5, 2e9}, nil, 3 * time.Second},
		{"times that run back", []int64{-7}, nil, 1},
		{"longer than any step", []int64{1 << 62}, nil, 1e18},
	} {
		var l Lifetimes
		for _, ns := range tt.ends {
			for range 100 {
				l.Ended(ns)
			}
		}
		for _, ns := range tt.more {
			l.Ended(ns)
		}
		if got := l.Usual(); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestJudge(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name string
		y    Young
		want Doubt
	}{
		{"nothing is live", Young{Recorded: 9 * s, Usual: s, Before: 500}, NoDoubt},
		{"a leak: most are older than others got", Young{Recorded: 60 * s, Usual: s, Live: 1000, Young: 20}, NoDoubt},
		{"half is not most", Young{Recorded: 60 * s, Usual: s, Live: 1000, Young: 500}, NoDoubt},
		{"most are young", Young{Recorded: 60 * s, Usual: s, Live: 1000, Young: 501}, MostlyYoung},
		{"as old as the recording", Young{Recorded: 9 * s, Usual: 10 * s, Live: 1000, Young: 1000}, ShorterThanUsual},
		{"no times", Young{Live: 1000, Young: 1000}, NoDoubt},
		{"nothing is known of lives", Young{Recorded: 60 * s, Live: 1000}, NoDoubt},
		{"a steady cache", Young{Recorded: 9 * s, Live: 1000, Before: 999}, ManyFromBefore},
		{"half as many", Young{Recorded: 9 * s, Live: 1000, Before: 500}, ManyFromBefore},
		{"fewer", Young{Recorded: 9 * s, Live: 1000, Before: 499}, NoDoubt},
		{"too few to tell", Young{Recorded: 9 * s, Live: 10, Before: 99}, NoDoubt},
		{"without times, too", Young{Live: 100, Before: 100}, ManyFromBefore},
	} {
		if got := tt.y.Judge(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
