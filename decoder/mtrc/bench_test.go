package mtrc_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"

	"rtrace-bpf/decoder/mtrc"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// stream returns a 64-bit stream of n allocations, each freed 64 allocations later, as
// a process on x86-64 makes them. They come from names functions, each in a file of its
// own; 0 means no names.
func stream(n, names int) []byte {
	b := append([]byte(wire.Magic), 1, 0, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, wire.Version)
	defined := 0
	source := func(i int) {
		b = binary.AppendUvarint(b, uint64(70000+i%4))
		for range 2 {
			switch id := i%max(names, 1)%wire.Names + 1; {
			case names == 0:
				b = append(b, 0)
			case names > wire.Names || defined < 2*names:
				defined++
				b = append(b, byte(id)|wire.Define)
				b = fmt.Appendf(b, "function_%d\x00", i%names)
			default:
				b = append(b, byte(id))
			}
		}
		b = binary.AppendUvarint(b, uint64(i%5000))
	}
	for i := range n {
		b = append(b, 'A')
		b = binary.AppendUvarint(b, uint64(i+1))
		b = binary.AppendUvarint(b, 0x7f0012340010+uint64(i%97)*48)
		b = binary.AppendUvarint(b, uint64(i%1000))
		source(i)
		if i >= 64 {
			b = append(b, 'F')
			b = binary.AppendUvarint(b, uint64(i-63))
			source(i)
		}
	}
	return append(b, wire.Magic...)
}

func BenchmarkScanner(b *testing.B) {
	for _, tt := range []struct {
		name  string
		names int
	}{{"names=0", 0}, {"names=30", 30}, {"names=300", 300}} {
		b.Run(tt.name, func(b *testing.B) {
			data := stream(100_000, tt.names)
			r := bytes.NewReader(data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			events := 0
			for b.Loop() {
				r.Reset(data)
				s, err := mtrc.NewScanner(r, mtrc.Options{})
				if err != nil {
					b.Fatal(err)
				}
				var e wire.Event
				for err = s.Next(&e); err == nil; err = s.Next(&e) {
					events++
				}
				if !errors.Is(err, io.EOF) {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

func BenchmarkReader(b *testing.B) {
	data := stream(100_000, 30)
	r := bytes.NewReader(data)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	records := 0
	for b.Loop() {
		r.Reset(data)
		d, err := mtrc.NewReader(r, mtrc.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var rec trace.Record
		for err = d.ReadRecord(&rec); err == nil; err = d.ReadRecord(&rec) {
			records++
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds()/1e6, "Mrecords/s")
}
