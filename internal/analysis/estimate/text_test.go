package estimate_test

import (
	"testing"

	"rtrace-bpf/internal/analysis/estimate"
)

func TestText(t *testing.T) {
	for _, tt := range []struct {
		e          estimate.Estimate
		text, rate string // of the sum, and per second of 10 s
	}{
		{estimate.Estimate{Value: 1_234_567, Low: 1_190_000, High: 1_280_000}, "1,235,000 ± 45,000", "123,500 ± 4,500"},
		{estimate.Estimate{Value: 42, Low: 3, High: 530}, "42 (3 to 530)", "4.2 (0.30 to 53)"},
		{estimate.Estimate{Value: 700, Low: 70, AtLeast: true}, "at least 70", "at least 7.0"},
		{estimate.Estimate{Value: 7, Low: 7, High: 7}, "7", "0.70"},
		{estimate.Estimate{}, "0", "0"},
	} {
		if got, rate := tt.e.Text(), tt.e.Per(10e9).RateText(); got != tt.text || rate != tt.rate {
			t.Errorf("%+v: %q and %q, want %q and %q", tt.e, got, rate, tt.text, tt.rate)
		}
	}
	if got := (estimate.Estimate{Value: 7, Low: 6, High: 8}).Per(0); got != (estimate.Estimate{}) {
		t.Errorf("a rate without time: %+v", got)
	}
}
