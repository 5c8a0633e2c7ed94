package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// BenchmarkProfile measures leaks, mprof, top, diff and profiles on a binary trace of 240,000 calls
// with 8 to 10 frames: millions of calls per second. With -r every frame of
// every allocation is looked up.
func BenchmarkProfile(b *testing.B) {
	path := filepath.Join(b.TempDir(), "churn.rtrace")
	var file bytes.Buffer
	calls, err := writeChurn(&file, 120_000)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, command := range []string{
		"leaks", "leaks -r", "leaks --blocks", "mprof", "mprof -r", "mprof -v -n 0",
		"top", "top -r", "top --by size", "diff --from 1000", "convert -f pprof -o -", "convert -r -f folded",
	} {
		b.Run(command, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: os.Stderr}
				args := append(append([]string{"rtrace"}, strings.Fields(command)...), path)
				if code := run(context.Background(), s, args); code != cli.OK {
					b.Fatal(code)
				}
			}
			b.ReportMetric(float64(calls)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mcalls/s")
		})
	}
}
