package nettrace_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"rtrace-bpf/decoder/nettrace"
	encoder "rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/trace"
)

// BenchmarkScanner reads recorded streams: those of the corpus that are large enough to
// measure.
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

// BenchmarkOwn reads what rtrace's encoder has written, 200,000 calls from 2000 places,
// as events and as records.
func BenchmarkOwn(b *testing.B) {
	const calls, sites = 200000, 2000
	var out bytes.Buffer
	w, err := encoder.New(&out, encoder.Options{})
	if err != nil {
		b.Fatal(err)
	}
	rec := trace.Record{Kind: trace.KindHeader, Header: trace.Header{PointerSize: 8}}
	if err := w.WriteRecord(&rec); err != nil {
		b.Fatal(err)
	}
	frames := make([]uint64, 10)
	for i := range calls {
		for j := range frames {
			frames[j] = uint64(0x7f0000000000 + 4096*j + i*7%sites)
		}
		rec = trace.Record{Kind: trace.KindCall, Time: int64(1e9 + 300*i), PID: 1000, TID: 1000 + int32(i%4), Call: trace.Call{
			Seq: uint64(i + 1), Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: uint64(0x10000 + 64*(i/2)), Size: uint64(i % 999),
			Stack: trace.Stack{Frames: frames},
		}}
		if i%2 == 1 {
			rec.Call.Op, rec.Call.Function, rec.Call.Size, rec.Call.Stack = trace.OpFree, "free", 0, trace.Stack{}
		}
		if err := w.WriteRecord(&rec); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	data := out.Bytes()
	read := func(name string, all func(r io.Reader) (calls int, err error)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			events := 0
			for b.Loop() {
				n, err := all(bytes.NewReader(data))
				if !errors.Is(err, io.EOF) || n < calls {
					b.Fatalf("%d calls, %v", n, err)
				}
				events += calls
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
	read("events", func(r io.Reader) (n int, err error) {
		s, err := nettrace.NewScanner(r, nettrace.Options{})
		for ; err == nil; n++ {
			_, err = s.Next()
		}
		return n, err
	})
	read("records", func(r io.Reader) (n int, err error) {
		d, err := nettrace.NewReader(r, nettrace.Options{})
		var rec trace.Record
		for ; err == nil; n++ {
			err = d.ReadRecord(&rec)
		}
		return n, err
	})
}
