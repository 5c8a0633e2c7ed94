package gnuplot_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/report/gnuplot"
)

func text(t *testing.T, s *gnuplot.Store, n int) string {
	t.Helper()
	var out bytes.Buffer
	if err := s.Write(&out, n); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestStore(t *testing.T) {
	for _, tt := range []struct {
		options gnuplot.Options
		names   [3]string
		points  string
		row     string
	}{
		{gnuplot.Options{}, [3]string{"totals_0.dat", "activity_0.dat", "totals_1.dat"}, "5 1\n5.25 18446744073709551615\n-0.000001 0\n\n", "4294967301\t2\n"},
		{gnuplot.Options{Legacy: true}, [3]string{"timeline_0.dat", "timeline_1.dat", "timeline_2.dat"}, "5 1\n5 -1\n0 0\n\n", "5\t2\n"},
		{gnuplot.Options{Calls: true}, [3]string{"totals_0.dat", "activity_0.dat", "totals_1.dat"}, "5000000 1\n5250000 18446744073709551615\n-1 0\n\n", "4294967301\t2\n"},
	} {
		s := gnuplot.New(tt.options)
		a := s.Begin(consumption.Totals, "first\n\x1b[2J")
		b := s.Begin(consumption.Activity, "second")
		c := s.Begin(consumption.Totals, "third")
		s.Point(a, 5_000_000, 1)
		s.Row(b, 1<<32+5, 2)
		s.Point(a, 5_250_000, 1<<64-1)
		s.Point(a, -1, 0)
		s.Break(a)
		if got, want := text(t, s, a), "first??[2J\n"+tt.points; got != want {
			t.Errorf("%+v: %q, want %q", tt.options, got, want)
		}
		if got, want := text(t, s, b), "second\n"+tt.row; got != want {
			t.Errorf("%+v: %q, want %q", tt.options, got, want)
		}
		for i, n := range []int{a, b, c} {
			if got := s.Name(n); got != tt.names[i] {
				t.Errorf("%s, want %s", got, tt.names[i])
			}
		}
		if err := s.Close(); err != nil || s.Err() != nil || s.Len() != 3 {
			t.Errorf("%v, %v", err, s.Err())
		}
	}
}

// Series that are longer than the buffers are written completely.
func TestLong(t *testing.T) {
	s := gnuplot.New(gnuplot.Options{Calls: true})
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var want [3]strings.Builder
	for i := range want {
		fmt.Fprintln(&want[i], i)
		s.Begin(consumption.Lifetime, fmt.Sprint(i))
	}
	for i := range 60000 {
		n := i * i % 3
		s.Point(n, int64(i), uint64(7*i))
		fmt.Fprintln(&want[n], i, 7*i)
	}
	for i := range want {
		if text(t, s, i) != want[i].String() {
			t.Errorf("series %d differs from the points added", i)
		}
	}
}

func TestTooMany(t *testing.T) {
	s := gnuplot.New(gnuplot.Options{})
	for range 5000 {
		s.Point(s.Begin(consumption.Lifetime, "x"), 1, 1)
	}
	if s.Err() == nil || s.Len() != 4096 {
		t.Errorf("%d series, %v", s.Len(), s.Err())
	}
}
