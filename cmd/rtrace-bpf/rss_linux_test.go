package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// TestGrowthElsewhere traces a program that maps and touches memory without allocating
// blocks. The summary must report the growth with figures, and the trace must have the
// resident memory at its beginning and at its end, while the program still runs.
func TestGrowthElsewhere(t *testing.T) {
	for format, suffix := range map[string]string{"sprtrace": "", "jsonl": ".jsonl", "mtrc": ".mtrc"} {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "mapgrow", "128")
			r := start(t, child, "--format", format)
			child.Go()
			child.Ready()
			r.Signal(unix.SIGINT)
			r.ends(cli.OK)
			child.Go()
			child.Succeed()
			r.says("blocks allocated and still live by 1000 B: the growth is not in the traced blocks")
			r.says(fmt.Sprintf("Next: rtrace-bpf -p %d -e memory:mmap:shmposix --heap-info", child.PID))
			var got []uint64
			for _, rec := range load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffix))) {
				if rec.Kind == trace.KindRSS {
					got = append(got, rec.RSS.Bytes)
				}
			}
			if len(got) != 2 || got[1] < got[0]+120<<20 || got[1] > got[0]+160<<20 {
				t.Errorf("resident memory %d, want one value and another about 128 MiB above", got)
			}
		})
	}
}

// If a program grows by its blocks, the summary has no line about growth.
func TestGrowthInBlocks(t *testing.T) {
	child := waiting(t, "alloc", "1", "100")
	r := start(t, child)
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	if strings.Contains(string(r.Stderr()), "the growth is not in") {
		t.Error(string(r.Stderr()))
	}
}
