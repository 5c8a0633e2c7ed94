package symbol

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
)

// keep holds the result of a benchmark, so that its size can be measured.
var keep any

// loadAll measures opening a file, reading its symbols and the memory that
// they take.
func loadAll(b *testing.B, open func() (*File, error)) {
	b.Helper()
	var before, after runtime.MemStats
	f, err := open()
	if err != nil {
		b.Skip("SKIP:", err)
	}
	functions := f.Functions()
	keep = nil
	f.Close()
	f = nil
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, _ = open()
	_ = f.Load()
	runtime.GC()
	runtime.ReadMemStats(&after)
	keep = f
	b.ReportAllocs()
	for b.Loop() {
		g, err := open()
		if err != nil {
			b.Fatal(err)
		}
		_ = g.Load()
		g.Close()
	}
	b.ReportMetric(float64(functions), "functions")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(functions), "kept-B/function")
	f.Close()
}

func BenchmarkLoadLibc(b *testing.B) {
	loadAll(b, func() (*File, error) { return Open("/lib/x86_64-linux-gnu/libc.so.6") })
}

// large returns a file with 100,000 functions whose names have the usual length.
func large() []byte {
	f := standard()
	for i := range 100_000 {
		f.symtab = append(f.symtab, forged{
			name: fmt.Sprintf("_ZN7project6module%06d8functionERKSsi", i), addr: codeAddr + uint64(i)*16, size: 16, info: global | fn, section: 1,
		})
	}
	data := f.build()
	// Make room for the code. Only the headers claim it: the file does not contain it.
	size := []byte{0, 0, 0x40, 0, 0, 0, 0, 0}
	copy(data[64+56+40:], size)
	return data
}

func BenchmarkLoad100k(b *testing.B) {
	data := large()
	loadAll(b, func() (*File, error) { return New(bytes.NewReader(data), int64(len(data))) })
}

func BenchmarkFind(b *testing.B) {
	data := large()
	f, err := New(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		b.Fatal(err)
	}
	if f.Functions() != 100_000 {
		b.Fatal(f.Functions())
	}
	b.ReportAllocs()
	addr := uint64(codeAddr)
	for b.Loop() {
		if f.Find(addr) < 0 {
			b.Fatal(addr)
		}
		if addr += 7919; addr >= codeAddr+1_600_000 {
			addr -= 1_600_000
		}
	}
}
