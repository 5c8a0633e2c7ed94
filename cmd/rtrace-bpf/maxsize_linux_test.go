package main

import (
	"os"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// TestMaxSize checks that the trace and its side file together stay below --max-size and
// are whole, and that the program goes on. The size of an MTRC trace is not checked: its
// records are kept in another file until the end.
func TestMaxSize(t *testing.T) {
	const limit = 3 << 20
	for format := range formats(t) {
		t.Run(format, func(t *testing.T) {
			child := waiting(t, "loop", "1")
			r := start(t, child, "--format", format, "--max-size", "3M")
			child.Go()
			r.ends(cli.OK)
			r.says("the trace is as large as --max-size allows, and ends\n")
			all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*"))
			if err != nil || len(all) == 0 {
				t.Fatalf("files: %v, %v", all, err)
			}
			size := int64(0)
			for _, path := range all {
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				size += info.Size()
			}
			if format != "mtrc" && (size > limit || size < limit/2) {
				t.Errorf("%v have %d bytes", all, size)
			}
			records := load(t, all[0])
			if n := count(records, "malloc"); n < 1000 {
				t.Errorf("%d calls of malloc", n)
			}
			if last := records[len(records)-1].Kind; format == "jsonl" && last != trace.KindEnd {
				t.Errorf("it ends with %v", last)
			}
			child.Close()
			child.Succeed()
		})
	}
}
