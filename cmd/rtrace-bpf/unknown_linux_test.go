package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/record"
)

// blockModel holds the blocks that a reader of a trace considers live, and those that were
// live at a gap of the recording and are therefore unknown; sizes by ID.
type blockModel struct{ live, unknown map[uint64]uint64 }

func modelOf(records []*trace.Record) blockModel {
	m := blockModel{map[uint64]uint64{}, map[uint64]uint64{}}
	end := func(id uint64) {
		delete(m.live, id)
		delete(m.unknown, id)
	}
	for _, r := range records {
		switch c := &r.Call; {
		case r.Kind == trace.KindLost && (r.Lost.Reason == trace.LostPaused || r.Lost.Reason == "probes moved"):
			maps.Copy(m.unknown, m.live)
			clear(m.live)
		case r.Kind != trace.KindCall:
		case c.Op == trace.OpFree:
			end(c.ID)
		default:
			if c.Op == trace.OpMove {
				end(c.OldID)
			}
			end(c.ID)
			m.live[c.ID] = c.Size
		}
	}
	return m
}

// The summary counts as many live and unknown blocks as a reader of the trace.
func TestLiveAcrossPauses(t *testing.T) {
	for _, format := range []string{"jsonl", "sprtrace"} {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "churn", "2")
			r := start(t, child, "--format", format, "--max-rate", "1000")
			child.Go()
			pausedTwice(t, child)
			r.Signal(unix.SIGINT)
			r.ends(cli.Incomplete)
			child.Close()
			child.Succeed()
			suffix := ""
			if format == "jsonl" {
				suffix = ".jsonl"
			}
			m := modelOf(load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffix))))
			r.says(fmt.Sprintf("live at the end: %d blocks, ", len(m.live)))
			unknown := regexp.MustCompile(`unknown: (\d+) more blocks`).FindSubmatch(r.Stderr())
			if n := len(m.unknown); n > 0 && (unknown == nil || string(unknown[1]) != fmt.Sprint(n)) || n == 0 && unknown != nil {
				t.Errorf("%d blocks unknown by the trace:\n%s", n, r.Stderr())
			}
		})
	}
}

// TestPausesAreNoLosses checks that no text calls a pause a lost event, and that each has
// the number of pauses.
func TestPausesAreNoLosses(t *testing.T) {
	stats := record.Stats{Calls: 9, Paused: 5e9, LiveBlocks: 1, LiveBytes: 10, UnknownBlocks: 4, UnknownBytes: 99}
	stats.Lost[order.LossPaused] = 2
	const paused = "the recording was paused 2 times, 5s in all, for --max-rate"
	var out bytes.Buffer
	r := newReporter(&config{}, cli.Streams{Err: &out}, true)
	err := r.outcome(&recording.Result{Stats: stats, Sessions: 2, Windows: 1})
	if !errors.Is(err, cli.ErrIncomplete) || err.Error() != paused {
		t.Errorf("exit note: %v", err)
	}
	for _, want := range []string{"  live at the end: 1 blocks, 10 B\n", "  unknown: 4 more blocks, 99 B, were live when the recording paused", "  lost: 0\n", "  paused: " + paused} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the lines of all processes are without %q:\n%s", want, out.String())
		}
	}
	out.Reset()
	r.line.Show(7, status.Figures{Calls: 9, Pauses: 2, Blocks: 1, Unknown: 4, Bytes: 10})
	if want := "1 blocks live (10 B), 4 unknown, 0 lost, paused 2 times"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("line of progress %q, want %q", out.String(), want)
	}
	out.Reset()
	none := func(int) []record.LiveSite { return nil }
	r.Ended(&recording.Summary{Stats: stats, Alone: true, Sites: none})
	for _, want := range []string{"  unknown: 4 more blocks, ", "  lost: 0\n  paused: " + paused + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary is without %q:\n%s", want, out.String())
		}
	}
}

// Missing parts of events are not reported as lost events.
func TestPartsAreNoLostEvents(t *testing.T) {
	var stats record.Stats
	stats.Lost[order.LossStack] = 3
	r := newReporter(&config{general: generalFlags{quiet: true}}, cli.Streams{}, false)
	if err := r.outcome(&recording.Result{Stats: stats}); err == nil || err.Error() != "no event was lost, but parts of events are missing or in doubt (stack failed 3)" {
		t.Errorf("exit note: %v", err)
	}
}
