package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer"
)

// costs are those of a machine: half a microsecond each.
var costs = tracer.Costs{Entry: 500, Return: 500}

// There is a warning when tracing takes much of the CPU time of the process, and another
// when the slow-down has doubled. Lost calls cost the same.
func TestPace(t *testing.T) {
	var p pace
	now, r := time.Now(), reading{}
	p.look(r, now, costs)
	for i, test := range []struct {
		hits        uint64 // entries; half as many returns
		calls, lost uint64
		cpu         time.Duration
		want        burden
		tell        bool
	}{
		{0, 0, 0, time.Second, burden{}, false},
		{20_000, 20_000, 0, time.Second, burden{20_000, 0.015, 0.015, 0}, false},
		{20_000, 20_000, 0, 30 * time.Millisecond, burden{20_000, 0.5, 0.015, 0}, false}, // little altogether
		{200_000, 200_000, 0, time.Second, burden{200_000, 0.15, 0.15, 0}, true},
		{400_000, 400_000, 0, time.Second, burden{400_000, 0.3, 0.3, 0}, false},
		{800_000, 800_000, 0, time.Second, burden{800_000, 0.6, 0.6, 0}, true},
		{1_200_000, 1_200_000, 0, time.Second, burden{1_200_000, 0.9, 0.9, 0}, true},
		{1_200_000, 1_199_000, 1_000, time.Second, burden{1_200_000, 0.9, 0.9, 1_000. / 1_200_000}, false},
		{1_200_000, 72_000, 1_128_000, time.Second, burden{1_200_000, 0.9, 0.9, 0.94}, true}, // once
		{1_200_000, 72_000, 1_128_000, time.Second, burden{1_200_000, 0.9, 0.9, 0.94}, false},
		{4_000_000, 4_000_000, 0, time.Second, burden{4_000_000, 0.95, 3, 0}, false}, // more than there is
	} {
		now = now.Add(time.Second)
		r.hits.Entries += test.hits
		r.hits.Returns += test.hits / 2
		r.calls += test.calls
		r.lost += test.lost
		r.cpu += test.cpu
		got, tell := p.look(r, now, costs)
		if d := cmp.Diff(test.want, got, cmp.AllowUnexported(burden{}), cmpopts.EquateApprox(1e-9, 0)); d != "" || tell != test.tell {
			t.Errorf("look %d: told: %v, want %v (-want +got):\n%s", i, tell, test.tell, d)
		}
	}
}

// A program most of whose calls are lost is slowed down as much as if they were there.
func TestPaceOfLostCalls(t *testing.T) {
	var p pace
	now := time.Now()
	p.look(reading{}, now, costs)
	r := reading{hits: tracer.Hits{Entries: 1_200_000, Returns: 600_000}, calls: 72_000, lost: 1_128_000, cpu: time.Second}
	if b, tell := p.look(r, now.Add(time.Second), costs); !tell || b.share != 0.9 {
		t.Errorf("%+v, told: %v", b, tell)
	}
}

// The line has the rate, the share, the slow-down and what is lost, and says what helps
// unless that is asked for already. --quiet keeps it away.
func TestPaceIsTold(t *testing.T) {
	const much = "rtrace-bpf: process 7 makes 1.2M calls/s; at least 90 % of its CPU time goes into tracing, so it runs at least 10.0 times slower (a probe costs 500ns on this machine, a return 500ns more)"
	hits := tracer.Hits{Entries: 1_200_000, Returns: 600_000}
	for name, test := range map[string]struct {
		config config
		r      reading
		want   string
	}{
		"plain":   {config{}, reading{hits, 1_200_000, 0, time.Second}, much + "; what helps: --max-rate, which records in turns\n"},
		"limited": {config{maxRate: 5}, reading{hits, 1_200_000, 0, time.Second}, much + "\n"},
		"lost": {
			config{},
			reading{hits, 72_000, 1_128_000, time.Second},
			much + "; 94 % of the calls are lost; what helps: a larger --ring-size, or --max-rate, which records in turns, or --min-size, which leaves small blocks out\n",
		},
		"lost alone": {
			config{maxRate: 5, minSize: 1},
			reading{tracer.Hits{}, 990, 10, time.Second},
			"rtrace-bpf: process 7 makes 1.0k calls/s; 1 % of the calls are lost; what helps: a larger --ring-size\n",
		},
		"half": {
			config{maxRate: 5},
			reading{tracer.Hits{Entries: 400_000, Returns: 200_000, Inside: 100_000_000}, 400_000, 0, time.Second},
			"rtrace-bpf: process 7 makes 400.0k calls/s; about 40 % of its CPU time goes into tracing, so it runs about 1.7 times slower (a probe costs 500ns on this machine, a return 500ns more)\n",
		},
		"beyond measure": {
			config{maxRate: 5},
			reading{tracer.Hits{Entries: 2_000_000}, 1_000_000, 0, time.Second},
			"rtrace-bpf: process 7 makes 1.0M calls/s; at least 95 % of its CPU time goes into tracing, so it runs at least 20.0 times slower (a probe costs 500ns on this machine, a return 500ns more)\n",
		},
		"cheap": {config{}, reading{tracer.Hits{Entries: 1_000}, 1_000, 0, time.Second}, ""},
		"quiet": {config{quiet: true}, reading{hits, 1_200_000, 0, time.Second}, ""},
	} {
		var out bytes.Buffer
		x := session{config: &test.config, pid: 7, status: &status{w: &out}}
		now := time.Now()
		x.pace.look(reading{}, now, costs)
		if x.pace.tell(&x, test.r, now.Add(time.Second), costs); out.String() != test.want {
			t.Errorf("%s: %q, want %q", name, out.String(), test.want)
		}
	}
}

// There is a warning about a program that does nothing but allocate and free, also when
// most of its events are lost because the tracer could not read them.
func TestSlowDownIsReported(t *testing.T) {
	for name, ring := range map[string]string{"recorded": "64M", "lost": "64K"} {
		t.Run(name, func(t *testing.T) {
			child := waiting(t, "phases", "1", "100000")
			r := start(t, child, "--ring-size", ring)
			if name == "lost" {
				r.Signal(unix.SIGSTOP)
			}
			child.Go()
			child.Ready() // all calls are made
			if name == "lost" {
				r.Signal(unix.SIGCONT)
			}
			r.Signal(unix.SIGINT)
			r.Wait()
			child.Go()
			child.Succeed()
			r.says(" of its CPU time goes into tracing, so it runs ")
			if name == "lost" {
				r.says(" of the calls are lost; what helps: a larger --ring-size, or --max-rate")
			}
		})
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
