package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// TestSummaryLikeReaders checks that the summary of a trace with pauses has the numbers of
// live and unknown blocks that rtrace leaks, top and info (package usage) and report
// (package digest) find in the file.
func TestSummaryLikeReaders(t *testing.T) {
	for format, suffix := range map[string]string{"jsonl": ".jsonl", "sprtrace": ""} {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "churn", "2")
			r := start(t, child, "--format", format, "--max-rate", "1000")
			child.Go()
			pausedTwice(t, child)
			r.Signal(unix.SIGINT)
			r.ends(cli.Incomplete)
			child.Close()
			child.Succeed()
			finder, page := leak.NewStill(), digest.New(digest.Options{})
			counter := usage.New(func(*trace.Record) int { return 0 })
			for _, rec := range load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffix))) {
				finder.Add(rec)
				counter.Add(rec)
				page.Add(rec)
			}
			total, of := counter.Total(), page.Finish().Resources[0]
			var live, unknown uint64
			leaks := finder.Leaks()
			for i := range leaks.Len() {
				if leaks.Unknown(i) {
					unknown++
				} else {
					live++
				}
			}
			if total.Unknown.Blocks != unknown || of.Total.Unknown.Blocks != unknown || total.Live.Blocks != live || of.Total.Live.Blocks != live {
				t.Errorf("live %d, %d, %d; unknown %d, %d, %d", live, total.Live.Blocks, of.Total.Live.Blocks, unknown, total.Unknown.Blocks, of.Total.Unknown.Blocks)
			}
			r.says(fmt.Sprintf("live at the end: %d blocks, ", live))
			if unknowns := regexp.MustCompile(`unknown: (\d+) more blocks`).FindSubmatch(r.Stderr()); (unknowns != nil) != (unknown > 0) || unknowns != nil && string(unknowns[1]) != fmt.Sprint(unknown) {
				t.Errorf("%d blocks are unknown:\n%s", unknown, r.Stderr())
			}
		})
	}
}
