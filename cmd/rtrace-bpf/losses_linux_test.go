package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// showing is where and how a format records losses.
type showing struct {
	suffix, side string // of the trace, and of the file with the losses
	line         *regexp.Regexp
}

var shownBy = map[string]showing{
	"sprtrace": {"", ".side", lostLine},
	"mtrc":     {".mtrc", ".side", lostLine},
	"jsonl":    {".jsonl", "", lostLine},
	"text":     {".txt", "", regexp.MustCompile(`(?m)^## lost: (?P<count>\d+) events \((?P<reason>[^)]*)\)$`)},
}

var lostLine = regexp.MustCompile(`(?m)^\{.*"kind":"lost".*"count":(?P<count>\d+),"reason":"(?P<reason>[^"]*)"`)

// formats returns the formats for tests about each format. Without a sweep it returns the
// default alone, because formats do not depend on the kernel.
func formats(t *testing.T) map[string]showing {
	t.Helper()
	if !testutil.Sweep(t) {
		return map[string]showing{"sprtrace": shownBy["sprtrace"]}
	}
	return shownBy
}

// shown returns the sums of the losses in a file, which it reads as text, by reason.
func shown(t *testing.T, path string, line *regexp.Regexp) map[string]uint64 {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint64{}
	for _, m := range line.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseUint(m[line.SubexpIndex("count")], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[m[line.SubexpIndex("reason")]] += n
	}
	return all
}

// lostIn returns the sums of the losses in a trace, by reason.
func lostIn(records []*trace.Record) map[string]uint64 {
	all := map[string]uint64{}
	for _, rec := range records {
		if rec.Kind == trace.KindLost {
			all[rec.Lost.Reason] += rec.Lost.Count
		}
	}
	return all
}

// TestLossesInEachFormat checks that each format records losses, in the trace or in its
// side file, and that recorded and lost events together are those of the program. The
// summary and the exit code must agree.
func TestLossesInEachFormat(t *testing.T) {
	const pairs = 200_000
	for format, where := range formats(t) {
		t.Run(format, func(t *testing.T) {
			r, path := overflowing(t, format, pairs)
			r.ends(cli.Incomplete)
			lost := shown(t, path+where.side, where.line)["ring full"]
			r.says(fmt.Sprintf("ring full %d", lost))
			if lost == 0 {
				t.Fatal("nothing was lost: the test does not test")
			}
			records := load(t, path)
			r.says(fmt.Sprintf(" %d events:", 2*pairs-lost))
			allThere(t, format, records, 2*pairs-lost)
			if got := lostIn(records)["ring full"]; got != lost {
				t.Errorf("read again, %d are lost, the file has %d", got, lost)
			}
			if where.side == "" {
				return
			}
			// Without its side file, the trace contains no losses.
			if err := os.Remove(path + where.side); err != nil {
				t.Fatal(err)
			}
			if got := lostIn(load(t, path)); len(got) > 0 {
				t.Errorf("the trace itself contains losses: %v", got)
			}
		})
	}
}

// allThere checks the number of calls in a trace. MTRC records blocks, so only allocations
// can be counted there: a block whose free was lost is freed when its address is allocated
// again, and a free whose allocation was lost is left out.
func allThere(t *testing.T, format string, records []*trace.Record, want uint64) {
	t.Helper()
	got := uint64(count(records, "malloc") + count(records, "free"))
	if format == "mtrc" {
		if allocs := uint64(count(records, "malloc")); allocs > want || allocs == 0 || got < allocs {
			t.Errorf("%d allocations and %d frees in the trace of %d events", allocs, got-allocs, want)
		}
		return
	}
	if got != want {
		t.Errorf("%d events in the trace, want %d", got, want)
	}
}

// With --strict, a trace in any format ends at the loss: it has whole records and the loss,
// and no end.
func TestStrictInEachFormat(t *testing.T) {
	const pairs = 200_000
	for format, where := range formats(t) {
		t.Run(format, func(t *testing.T) {
			r, path := overflowing(t, format, pairs, "--strict")
			r.ends(cli.Failed)
			r.says("ring full: events were lost, and the trace ends at the first loss")
			all := shown(t, path+where.side, where.line)
			if len(all) != 1 {
				t.Errorf("lost by the file: %v; want the first reason alone", all)
			}
			records := loadEnded(t, path)
			ended := false
			for _, rec := range records {
				if rec.Kind == trace.KindLost {
					ended = true
				} else if ended && rec.Kind == trace.KindCall {
					t.Fatalf("call %d follows the loss", rec.Call.Seq)
				}
			}
			if !ended {
				t.Error("no loss in the trace")
			}
		})
	}
}

// overflowing records a program with the smallest rings while the tracer is stopped. It
// returns the recording and the path of the trace.
func overflowing(t *testing.T, format string, pairs int, args ...string) (*running, string) {
	t.Helper()
	child := waiting(t, "loop", "1", strconv.Itoa(pairs))
	r := start(t, child, append([]string{"--format", format, "--ring-size", "64k"}, args...)...)
	r.Signal(syscall.SIGSTOP)
	child.Go()
	child.Succeed()
	r.Signal(syscall.SIGCONT)
	r.Wait()
	return r, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, shownBy[format].suffix))
}

// TestLossesInStreams checks that a trace to standard output records losses as a file does,
// in the stream or in the file that --side names.
func TestLossesInStreams(t *testing.T) {
	for format := range formats(t) {
		t.Run(format, func(t *testing.T) {
			const pairs = 200_000
			dir := t.TempDir()
			where, stream, side := shownBy[format], filepath.Join(dir, "stream"), filepath.Join(dir, "side")
			child := waiting(t, "loop", "1", strconv.Itoa(pairs))
			r := start(t, child, "--format", format, "--ring-size", "64k", "-o", "-", "--side", side)
			r.Signal(syscall.SIGSTOP)
			child.Go()
			child.Succeed()
			r.Signal(syscall.SIGCONT)
			r.ends(cli.Incomplete)
			if err := os.WriteFile(stream, r.Output(), 0o600); err != nil {
				t.Fatal(err)
			}
			path := stream
			if where.side != "" {
				path = side
			}
			lost := shown(t, path, where.line)["ring full"]
			records := load(t, stream)
			if lost == 0 {
				t.Fatal("nothing was lost: the test does not test")
			}
			allThere(t, format, records, 2*pairs-lost)
			if !strings.Contains(string(r.Stderr()), fmt.Sprintf("ring full %d", lost)) {
				t.Errorf("the summary differs:\n%s", r.Stderr())
			}
		})
	}
}
