package lines

import (
	"testing"

	"rtrace-bpf/internal/symbol"
)

// BenchmarkOpen reads the debugging information of a small C++ program and builds its
// index.
func BenchmarkOpen(b *testing.B) {
	path := compile(b, "gcc", "shapes.cc", "-O2", "-g")
	b.ReportAllocs()
	for b.Loop() {
		f, err := symbol.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		info, err := Read(f, MaxSize)
		if err != nil {
			b.Fatal(err)
		}
		New(info, f)
		f.Close()
	}
}

// BenchmarkLoad reads the only unit of that program.
func BenchmarkLoad(b *testing.B) {
	tab, _ := table(b, "", compile(b, "gcc", "shapes.cc", "-O2", "-g"))
	b.ReportAllocs()
	for b.Loop() {
		for i := range tab.units {
			tab.load(&tab.units[i])
		}
		for len(tab.loaded.list) > 0 {
			tab.loaded.drop()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(tab.info.info)), "ns/byte")
}

// BenchmarkAppendFrames looks up addresses in a unit that is loaded.
func BenchmarkAppendFrames(b *testing.B) {
	path := compile(b, "gcc", "shapes.cc", "-O2", "-g")
	tab, _ := table(b, "", path)
	start, end := section(b, path, ".text")
	var frames []Frame
	b.ReportAllocs()
	for addr := start; b.Loop(); addr += 61 {
		if addr >= end {
			addr -= end - start
		}
		frames = tab.AppendFrames(frames[:0], addr)
	}
}
