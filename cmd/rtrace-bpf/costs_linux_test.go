package main

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/cost"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/record"
)

// costs are the costs of a probe and of a return: half a microsecond each.
var costs = host.Costs{Entry: 500, Return: 500}

// TestCostIsReported checks that the warning contains the rate, the share, the slowdown and
// the losses, that it names the flags that help unless they are set, and that --quiet
// suppresses it.
func TestCostIsReported(t *testing.T) {
	const much = "rtrace-bpf: process 7 makes 1.2M calls/s; at least 90 % of its CPU time goes into tracing, so it runs at least 10.0 times slower (a probe costs 500ns on this machine, a return 500ns more)"
	// Above twice, there are other ways to look at the process.
	others := "rtrace-bpf record --budget 1% -p 7, which estimates from short windows" +
		", or rtrace-bpf top -e growth -p 7, which shows what makes RSS grow without probes"
	or, alone := ", or "+others, "; what helps: "+others
	limited := config{limits: limitFlags{maxRate: 5}}
	for name, test := range map[string]struct {
		config config
		i      cost.Interval
		want   string
	}{
		"plain":   {config{}, cost.Interval{Rate: 1_200_000, Share: 0.9}, much + "; what helps: --max-rate, which records in turns" + or + "\n"},
		"limited": {limited, cost.Interval{Rate: 1_200_000, Share: 0.9}, much + alone + "\n"},
		"lost": {
			config{},
			cost.Interval{Rate: 1_200_000, Share: 0.9, Lost: 0.94},
			much + "; 94 % of the calls are lost; what helps: a larger --ring-size, or --max-rate, which records in turns, or --min-size, which leaves small blocks out" + or + "\n",
		},
		"lost alone": {
			config{limits: limitFlags{maxRate: 5}, allocators: allocatorFlags{minSize: 1}},
			cost.Interval{Rate: 1_000, Lost: 0.01},
			"rtrace-bpf: process 7 makes 1.0k calls/s; 1 % of the calls are lost; what helps: a larger --ring-size\n",
		},
		"half": {
			limited,
			cost.Interval{Rate: 400_000, Share: 0.4},
			"rtrace-bpf: process 7 makes 400.0k calls/s; about 40 % of its CPU time goes into tracing, so it runs about 1.7 times slower (a probe costs 500ns on this machine, a return 500ns more)\n",
		},
		"beyond measure": {
			limited,
			cost.Interval{Rate: 1_000_000, Share: 0.95},
			"rtrace-bpf: process 7 makes 1.0M calls/s; at least 95 % of its CPU time goes into tracing, so it runs at least 20.0 times slower (a probe costs 500ns on this machine, a return 500ns more)" + alone + "\n",
		},
		"quiet": {config{general: generalFlags{quiet: true}}, cost.Interval{Rate: 1_200_000, Share: 0.9}, ""},
	} {
		var out bytes.Buffer
		r := newReporter(&test.config, cli.Streams{Err: &out}, false)
		if r.Expensive(7, &test.i, costs); out.String() != test.want {
			t.Errorf("%s: %q, want %q", name, out.String(), test.want)
		}
	}
}

// TestSlowDownIsReported checks that there is a warning about a program that only allocates
// and frees.
func TestSlowDownIsReported(t *testing.T) {
	child := waiting(t, "loop", "1")
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	read, write := pipe(t)
	defer read.Close()
	cmd := command(t, append(ample, "-p", fmt.Sprint(child.PID), "-o", dir, "--ready-file", ready)...)
	cmd.Stderr = write
	r := startIn(t, cmd, dir, ready)
	write.Close()
	defer testutil.Unstuck(t, r.PID)()
	child.Go()
	lines := bufio.NewScanner(read)
	for lines.Scan() && !strings.Contains(lines.Text(), " of its CPU time goes into tracing, so it runs ") {
	}
	if lines.Text() == "" {
		t.Errorf("there is no warning: %v", lines.Err())
	}
	r.Signal(unix.SIGINT)
	for lines.Scan() {
	}
	r.Wait()
	child.Go()
	child.Succeed()
}

// The warning is there, too, when most events are lost because the tracer could not read
// them.
func TestSlowDownByLostCallsIsReported(t *testing.T) {
	child := waiting(t, "phases", "1", "100000")
	r := start(t, child, "--ring-size", "64K")
	r.Signal(unix.SIGSTOP)
	child.Go()
	child.Ready() // all calls are made
	r.Signal(unix.SIGCONT)
	r.Signal(unix.SIGINT)
	r.Wait()
	child.Go()
	child.Succeed()
	r.says(" of its CPU time goes into tracing, so it runs ")
	r.says(" of the calls are lost; what helps: a larger --ring-size, or --max-rate")
}

// pausedTwice waits for the second pause that --max-rate causes in the recording of a process
// that calls its allocator all the time. The probes are attached at first, and detached in a
// pause.
func pausedTwice(t *testing.T, child *testutil.Child) {
	t.Helper()
	defer testutil.Unstuck(t, child.PID)()
	for _, out := range []bool{true, false, true} {
		for (len(testutil.CodeOf(t, child.PID).Changed) == 0) != out {
			runtime.Gosched()
		}
	}
}

// TestPausesInEachFormat checks that each format records pauses for --max-rate, in the
// trace or in its side file, and that the summary and the exit status report them. A pause
// is no lost event.
func TestPausesInEachFormat(t *testing.T) {
	for format, where := range formats(t) {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "loop", "1")
			r := start(t, child, "--format", format, "--max-rate", "1000")
			child.Go()
			pausedTwice(t, child)
			r.Signal(unix.SIGINT)
			r.ends(cli.Incomplete)
			r.says("  lost: 0\n")
			r.says("the recording was paused ")
			path := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, where.suffix))
			n := shown(t, path+where.side, where.line)[trace.LostPaused]
			if n < 2 || len(shown(t, path+where.side, where.line)) != 1 {
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
		stats := record.Stats{Paused: 1_234_567_890}
		stats.Lost[order.LossPaused] = test.n
		if got := pauses(&stats); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
		if list := recording.Losses(&stats); strings.Contains(list, trace.LostPaused) {
			t.Errorf("among the losses: %s", list)
		}
	}
}
