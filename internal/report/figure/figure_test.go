package figure_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/report/figure"
)

func TestNumbers(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{figure.Count(0), "0"},
		{figure.Count(999), "999"},
		{figure.Count(1000), "1,000"},
		{figure.Count(1234567), "1,234,567"},
		{figure.Count(math.MaxUint64), "18,446,744,073,709,551,615"},
		{figure.Bytes(0), "0 B"},
		{figure.Bytes(1023), "1023 B"},
		{figure.Bytes(1024), "1 KiB"},
		{figure.Bytes(1536), "1.5 KiB"},
		{figure.Bytes(98304), "96 KiB"},
		{figure.Bytes(1023 * 1024), "1 MiB"},
		{figure.Bytes(12345678), "11.8 MiB"},
		{figure.Bytes(1 << 40), "1 TiB"},
		{figure.Bytes(math.MaxUint64), "16 EiB"},
		{figure.Bytes(999 * 1024), "999 KiB"},
		{figure.Short(999), "999"},
		{figure.Short(1000), "1 k"},
		{figure.Short(1234567), "1.23 M"},
		{figure.Short(999999), "1 M"},
		{figure.Seconds(0), "0 ns"},
		{figure.Seconds(1500), "1.5 µs"},
		{figure.Seconds(25e6), "25 ms"},
		{figure.Seconds(3600e9), "3600 s"},
		{figure.Percent(0), "0 %"},
		{figure.Percent(0.00001), "<0.1 %"},
		{figure.Percent(0.1234), "12.3 %"},
		{figure.Percent(0.99999), ">99.9 %"},
		{figure.Percent(1), "100 %"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		got, want []uint64
	}{
		{figure.Ticks(0, 5), []uint64{0}},
		{figure.Ticks(1, 5), []uint64{0, 1}},
		{figure.Ticks(10, 5), []uint64{0, 2, 4, 6, 8, 10}},
		{figure.Ticks(1200, 5), []uint64{0, 500, 1000}},
		{figure.Ticks(4999, 5), []uint64{0, 1000, 2000, 3000, 4000}},
		{figure.ByteTicks(0, 4), []uint64{0}},
		{figure.ByteTicks(5000, 4), []uint64{0, 2048, 4096}},
		{figure.ByteTicks(1<<20, 4), []uint64{0, 1 << 18, 1 << 19, 3 << 18, 1 << 20}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	for _, highest := range []uint64{math.MaxUint64, 1 << 63, 1<<63 - 1} {
		for _, ticks := range [][]uint64{figure.Ticks(highest, 5), figure.ByteTicks(highest, 5)} {
			if len(ticks) < 3 || len(ticks) > 11 || ticks[len(ticks)-1] > highest {
				t.Errorf("%d: %v", highest, ticks)
			}
		}
	}
}
