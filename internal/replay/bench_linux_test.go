package replay_test

import (
	"testing"

	"rtrace-bpf/internal/replay"
)

// BenchmarkReplay measures the cost of a call in a replay: with a malloc that
// does nothing, which is the replay's own share, and with the C library's. The
// processor predicts calls in pairs, but not in random order.
func BenchmarkReplay(b *testing.B) {
	pairs := newMaker()
	for range 100_000 {
		pairs.alloc(0, "malloc", 0x1000, 100)
		pairs.free(0, 0x1000)
	}
	null := shim(b, "-DNULL_MALLOC")
	for _, order := range []struct {
		name string
		made *maker
	}{{"pairs", pairs}, {"random", mallocsOnly(random(1, 1, 200_000, 100))}} {
		r := prepare(b, program(b, replay.OrderDependencies, order.made.records))
		for _, m := range []replay.Malloc{{Name: "null", Path: null.Path}, {Name: "glibc"}} {
			b.Run(order.name+"/"+m.Name, func(b *testing.B) {
				var cpu uint64
				for b.Loop() {
					run, err := r.Run(b.Context(), m, replay.TouchFirst)
					if err != nil {
						b.Fatal(err)
					}
					cpu += run.CPU
				}
				b.ReportMetric(float64(cpu)/float64(b.N*len(order.made.calls)), "cpu-ns/call")
			})
		}
	}
}

// mallocsOnly turns all allocations into calls of malloc.
func mallocsOnly(m *maker) *maker {
	for _, r := range m.records {
		if r.Call.Function != "free" && r.Call.Function != "realloc" {
			r.Call.Function = "malloc"
		}
	}
	return m
}
