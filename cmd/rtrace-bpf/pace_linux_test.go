package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// What tracing costs is told when it is much, and again when it has doubled.
func TestPace(t *testing.T) {
	var p pace
	start := time.Now()
	calls := uint64(0)
	for i, test := range []struct {
		rate uint64
		tell bool
	}{
		{0, false}, // the first look only begins
		{100_000, false},
		{200_000, true},
		{300_000, false},
		{400_000, true},
		{50_000, false},
		{500_000, false},
		{800_000, true},
	} {
		calls += 2 * test.rate
		rate, tell := p.rate(calls, start.Add(time.Duration(2*i)*time.Second))
		if tell != test.tell || rate != float64(test.rate) {
			t.Errorf("look %d: %v calls/s, told: %v; want %+v", i, rate, tell, test)
		}
	}
}

// The line has the rate and its cost, lost calls counted, and says what helps unless
// that is asked for already. --quiet keeps it away.
func TestPaceIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		config config
		want   string
	}{
		"plain":   {config{}, "rtrace-bpf: process 7 makes 2.0M calls/s, which tracing slows down: about 130 % of a processor go into it; --max-rate limits that\n"},
		"limited": {config{maxRate: 5}, "rtrace-bpf: process 7 makes 2.0M calls/s, which tracing slows down: about 130 % of a processor go into it\n"},
		"quiet":   {config{quiet: true}, ""},
	} {
		var out bytes.Buffer
		x := session{config: &test.config, pid: 7, status: &status{w: &out}}
		x.pace.at = time.Now().Add(-time.Hour)
		stats := tracer.Stats{Calls: 6_000_000_000}
		stats.Lost[tracer.LossRingFull] = 1_200_000_000
		if x.watch(&stats); out.String() != test.want {
			t.Errorf("%s: %q, want %q", name, out.String(), test.want)
		}
	}
}

// A pause for --max-rate is in each format, or beside it, in the summary and in the
// exit status. It is no lost event.
func TestPausesInEachFormat(t *testing.T) {
	for format, where := range formats(t) {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "loop", "1")
			r := start(t, child, "--format", format, "--max-rate", "1000", "--duration", "3s")
			child.Go()
			r.ends(cli.Incomplete)
			r.says("  lost: 0\n")
			r.says("the recording was paused ")
			path := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, where.suffix))
			n := shown(t, path+where.side, where.line)[trace.LostPaused]
			if n == 0 || len(shown(t, path+where.side, where.line)) != 1 {
				t.Errorf("%d pauses in the file", n)
			}
			records := load(t, path)
			if got := lostIn(records)[trace.LostPaused]; got != n {
				t.Errorf("read again, there are %d pauses, the file has %d", got, n)
			}
			for _, rec := range records {
				if rec.Kind == trace.KindLost && format != "text" && (rec.Lost.Since == 0 || rec.Time <= rec.Lost.Since) {
					t.Errorf("a pause from %d to %d", rec.Lost.Since, rec.Time)
				}
			}
			child.Close()
			child.Succeed()
		})
	}
}

func TestPauses(t *testing.T) {
	for _, test := range []struct {
		n    uint64
		want string
	}{
		{1, "the recording was paused once, 1.235s in all, for --max-rate"},
		{3, "the recording was paused 3 times, 1.235s in all, for --max-rate"},
	} {
		stats := tracer.Stats{Paused: 1_234_567_890}
		stats.Lost[tracer.LossPaused] = test.n
		if got := pauses(&stats); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if list := lossList(&stats); strings.Contains(list, trace.LostPaused) {
			t.Errorf("among the losses: %s", list)
		}
	}
}
