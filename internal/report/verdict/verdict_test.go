package verdict_test

import (
	"testing"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/verdict"
)

func TestText(t *testing.T) {
	some := live.Amount{Blocks: 200, Bytes: 4096}
	rate := func(blocks, bytes float64) trend.Trend {
		return trend.Trend{
			Kind: trend.Growing, Live: some, Blocks: trend.Rate{PerSecond: blocks}, Bytes: trend.Rate{PerSecond: bytes}, Start: true, Allocated: 2300,
		}
	}
	late := rate(0.5, 100)
	late.Start, late.Since, late.Freed, late.Old, late.Age = false, 3723e9, 5000, 31, 8_400_000_000
	few := late
	few.FreedOld = 2
	slow := rate(0.001, 0.1)
	slow.Live.Bytes = 0
	for _, tt := range []struct {
		trend trend.Trend
		want  string
	}{
		{trend.Trend{}, ""},
		{trend.Trend{Kind: trend.Empty}, "no blocks live"},
		{rate(28, 14<<10), "growing 28 blocks/s, 14 KiB/s, steady since the start; none of 2,300 freed"},
		{late, "growing 30 blocks/min, 5.86 KiB/min, steady since 1:02:03; none of 31 older than 8.4 s freed"},
		{few, "growing 30 blocks/min, 5.86 KiB/min, steady since 1:02:03; 2 of 33 older than 8.4 s freed"},
		{slow, "growing 3.6 blocks/h, steady since the start; none of 2,300 freed"},
		{rate(1.04, 10), "growing 1 blocks/s, 10 B/s, steady since the start; none of 2,300 freed"},
		{trend.Trend{Kind: trend.Balanced, Live: some, Old: 1900, Start: true}, "1,900 more since the start, but nearly as many blocks from before the recording were freed: record longer"},
		{trend.Trend{Kind: trend.Level, Live: some, Since: 3e9}, "level at 200 blocks since 00:03"},
		{trend.Trend{Kind: trend.Level, Live: live.Amount{Blocks: 1, Bytes: 1}, Start: true}, "level at 1 block since the start"},
		{trend.Trend{Kind: trend.Varying, Live: some, Low: 100, High: 4096, Restarts: 3}, "varying between 100 B and 4 KiB, grew again after it fell 3 times"},
		{trend.Trend{Kind: trend.Varying, Live: some, Low: 100, High: 4096, Restarts: 1}, "varying between 100 B and 4 KiB, grew again after it fell once"},
		{trend.Trend{Kind: trend.Varying, Live: some, Low: 100, High: 100}, "changed lately, now 200 blocks"},
	} {
		if got := verdict.Text(&tt.trend); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.trend, got, tt.want)
		}
	}
}
