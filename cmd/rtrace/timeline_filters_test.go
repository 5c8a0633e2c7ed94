package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/cli"
)

func TestParseRange(t *testing.T) {
	for text, want := range map[string]consumption.Range{
		"100-200": {Min: 100, End: 201}, "10k-": {Min: 10240}, "-1m": {End: 1<<20 + 1}, "2G-2g": {Min: 2 << 30, End: 2<<30 + 1},
		"-": {}, "0-0": {End: 1}, "5-18446744073709551615": {Min: 5},
	} {
		if got, ok := parseRange(text, 1024); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "5", "5-4", "a-b", "1-2-3", "k-", "-1x", "-17179869184g", "1.5-", "--1"} {
		if got, ok := parseRange(text, 1024); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
	if got, ok := parseRange("-2k", 1000); !ok || got.End != 2001 {
		t.Errorf("%v, %v", got, ok)
	}
}

func TestParseTimes(t *testing.T) {
	at := func(seconds float64, relative bool) consumption.Moment {
		return consumption.Moment{Set: true, Relative: relative, At: int64(math.Round(seconds * 1e9))}
	}
	for text, want := range map[string]consumption.Times{
		"10.5-12":       {From: at(10.5, false), To: at(12, false)},
		"10:00-+30":     {From: at(600, false), To: at(30, true)},
		"+1:00-+1:00":   {From: at(60, true), To: at(60, true)},
		"-":             {},
		"1:02:03.004-":  {From: at(3723.004, false)},
		"-+.25":         {To: at(0.25, true)},
		"100000-":       {From: at(100000, false)},
		"0-0.000000001": {From: at(0, false), To: at(1e-9, false)},
	} {
		if got, ok := parseTimes(text); !ok || got != want {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "5", "+-", "-+", "1:60-", "1:2:3:4-", "x-", "1.-x", ".-", ":-", "1:-", "-0.0000000001", "9999999999-", "1e3-"} {
		if got, ok := parseTimes(text); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestTimelineContexts: if a trace has more contexts than a mask can hold, a warning reports
// that some are left out.
func TestTimelineContexts(t *testing.T) {
	for contexts, want := range map[int]string{
		32: "",
		33: "rtrace timeline: warning: the trace declares more than 32 contexts; the others are left out\n",
	} {
		var text strings.Builder
		text.WriteString("{\"format\":\"rtrace-jsonl\",\"version\":1}\n")
		for i := range contexts {
			id := uint32(1) << i
			if i == 32 {
				id = 3
			}
			for range 2 {
				fmt.Fprintf(&text, "{\"kind\":\"context\",\"id\":%d,\"name\":\"c%d\"}\n", id, i)
			}
		}
		text.WriteString("{\"kind\":\"call\",\"time\":1000000,\"seq\":1,\"op\":\"alloc\",\"id\":\"0x10\",\"size\":8}\n")
		_, errOut, code := runRtrace(text.String(), "timeline", "-t")
		if errOut != want || code != cli.OK {
			t.Errorf("%d contexts: exit code %d, %q", contexts, code, errOut)
		}
	}
}

// TestLifetimesOfMilliseconds: a block that lived less than the clock's resolution, one of 5
// and one of 20 ms, and one that lives: no empty rows below 5 ms.
func TestLifetimesOfMilliseconds(t *testing.T) {
	const in = "version=2.0, pid=7, \n1. [00:00:01.000] f(1) = 0x1\n\n2. [00:00:01.000] free(0x1)\n\n3. [00:00:01.000] f(1) = 0x2\n\n" +
		"4. [00:00:01.000] f(1) = 0x3\n\n5. [00:00:01.005] free(0x2)\n\n6. [00:00:01.020] free(0x3)\n\n7. [00:00:01.030] f(1) = 0x4\n\n"
	out, errOut, code := runRtrace(in, "timeline", "--lifetimes", "-x", "time")
	var got [][]string
	for line := range strings.Lines(out) {
		if strings.HasSuffix(line, ".00\n") {
			got = append(got, strings.Fields(line))
		}
	}
	want := [][]string{
		{"0", "ns", "0", "ns", "1", "25.00", "1", "25.00"},
		{"4.19", "ms", "8.39", "ms", "1", "25.00", "1", "25.00"},
		{"8.39", "ms", "16.8", "ms", "0", "0.00", "0", "0.00"},
		{"16.8", "ms", "33.6", "ms", "1", "25.00", "1", "25.00"},
		{"to", "the", "end", "1", "25.00", "1", "25.00"},
	}
	if d := cmp.Diff(want, got); d != "" || code != cli.OK || errOut != "" {
		t.Errorf("exit code %d, %q (-want +got):\n%s\n%s", code, errOut, d, out)
	}
}
