package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// BenchmarkTables measures how fast a binary trace of 2,000,000 calls becomes tables:
// millions of rows per second, of calls and blocks.
func BenchmarkTables(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "churn.rtrace")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	calls, err := writeChurn(file, 1_000_000)
	if err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	out := filepath.Join(dir, "tables")
	for b.Loop() {
		s := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: os.Stderr}
		if code := run(context.Background(), s, []string{"rtrace", "convert", "-f", "parquet", "-o", out, path}); code != cli.OK {
			b.Fatal(code)
		}
	}
	b.ReportMetric(float64(calls)*1.5*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s") // half of the calls make a block
}
