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

// showing is where a format tells of losses: in which file, and how.
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

// formats is what tests go through that are about each format: without a sweep the
// default alone, since the kernel has no part in formats.
func formats(t *testing.T) map[string]showing {
	t.Helper()
	if !testutil.Sweep(t) {
		return map[string]showing{"sprtrace": shownBy["sprtrace"]}
	}
	return shownBy
}

// shown adds up what a file says of losses, read as text, by reason.
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

// lostIn adds up the losses of a trace that was read again.
func lostIn(records []*trace.Record) map[string]uint64 {
	all := map[string]uint64{}
	for _, rec := range records {
		if rec.Kind == trace.KindLost {
			all[rec.Lost.Reason] += rec.Lost.Count
		}
	}
	return all
}

// Each format shows what was lost, where it has a place for it or beside it: with
// what was recorded that is what the program made. The summary and the exit code
// say the same.
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
				t.Errorf("read again, %d are lost, the file says %d", got, lost)
			}
			if where.side == "" {
				return
			}
			// Without its side file the trace is one as of old.
			if err := os.Remove(path + where.side); err != nil {
				t.Fatal(err)
			}
			if got := lostIn(load(t, path)); len(got) > 0 {
				t.Errorf("the trace itself tells of losses: %v", got)
			}
		})
	}
}

// allThere counts the calls of a trace. MTRC is an account of blocks, and there only
// allocations can be counted: a block whose free was lost is freed when its address
// comes again, and a free of a block whose allocation was lost is left out.
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

// Under --strict each format ends there, with whole records and the loss in it, and
// without an end.
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
					t.Fatalf("call %d is behind the loss", rec.Call.Seq)
				}
			}
			if !ended {
				t.Error("no loss in the trace")
			}
		})
	}
}

// overflowing records a program with the smallest rings by a tracer that does not
// run meanwhile. It returns the path of the trace.
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

// A stream tells of losses as its file would, or in the file that --side names.
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
				t.Errorf("the summary says otherwise:\n%s", r.Stderr())
			}
		})
	}
}
