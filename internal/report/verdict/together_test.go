package verdict_test

import (
	"testing"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/verdict"
)

func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		stacks [][]string
		common int
		want   string
	}{
		{[][]string{{"malloc_copy", "open", "serve", "main"}, {"open", "serve", "main"}}, 2, "2 call sites below open"},
		{[][]string{{"open", "serve", "main"}, {"log", "serve", "main"}}, 2, "2 call sites below serve"},
		{[][]string{{"open", "main"}, {"", "main"}}, 1, "2 call sites below main"},
		{[][]string{{"", "main"}, {"", "main"}, {"", "main"}}, 1, "3 call sites below main"},
		{[][]string{{"a", ""}, {"b", ""}}, 1, "2 call sites with a common caller"},
		{[][]string{{"a"}, {"b"}}, 0, "2 call sites with a common caller"},
	} {
		if got := verdict.Together(len(tt.stacks), verdict.Below(tt.stacks, tt.common)); got != tt.want {
			t.Errorf("%v, %d in common: %q, want %q", tt.stacks, tt.common, got, tt.want)
		}
	}
	x := trend.Trend{Kind: trend.Growing, Live: live.Amount{Blocks: 500, Bytes: 1}, Blocks: trend.Rate{PerSecond: 50}, Bytes: trend.Rate{PerSecond: 12288}}
	if got := verdict.Each(5, &x); got != "5 blocks and 1.2 KiB each time" {
		t.Error(got)
	}
	x.Live.Bytes = 0
	if got := verdict.Each(5, &x); got != "5 blocks each time" {
		t.Error(got)
	}
}
