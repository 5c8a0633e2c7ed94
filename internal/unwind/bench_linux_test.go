package unwind

import (
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/symbol"
)

// BenchmarkBuild opens files of this machine and builds their tables.
func BenchmarkBuild(b *testing.B) {
	const lib = "/usr/lib/*-linux-gnu/"
	for _, path := range installed(lib+"libLLVM-14.so.1", lib+"libc.so.6", lib+"libstdc++.so.6", "/usr/bin/gdb", "/usr/bin/python3") {
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				f, err := symbol.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				table, err := Build(f)
				if err != nil {
					b.Fatal(err)
				}
				rows += len(table.Rows)
				f.Close()
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
