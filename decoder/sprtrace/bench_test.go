package sprtrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"rtrace-bpf/internal/binio"
	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// appendPacket appends a packet of version 2.
func appendPacket(dst []byte, order binio.Order, code uint32, data []byte) []byte {
	dst = order.AppendU32(dst, code)
	dst = order.AppendU32(dst, uint32(len(data)))
	return append(dst, data...)
}

// benchTrace returns a 64-bit trace of pairs of an allocation with 6 to 8 frames and a
// free without, and the number of calls.
func benchTrace(pairs int) ([]byte, int) {
	order := binio.Order{Pointer: 8}
	b := wire.AppendHandshake(nil, wire.V20, "x86_64", wire.LittleEndian, 8)
	padded := func(dst []byte, s string) []byte { return appendText(dst, order, Text{Bytes: []byte(s)}) }
	u32 := func(vs ...uint32) (d []byte) {
		for _, v := range vs {
			d = order.AppendU32(d, v)
		}
		return d
	}
	b = appendPacket(b, order, wire.PINF, padded(u32(1, 2, 3, 10), "demo"))
	b = appendPacket(b, order, wire.RESR, padded(padded(u32(1, 0), "memory"), "memory allocation in bytes"))
	names := []string{"malloc", "calloc", "realloc", "posix_memalign"}
	for i := range pairs {
		id := 0x55c9a2260000 + uint64(i)*32
		call := padded(u32(1, 0, uint32(1000+i/100), wire.CallAlloc), names[i%len(names)])
		call = order.AppendU64(order.AppendU32(call, uint32(i)), id)
		b = appendPacket(b, order, wire.CALL, call)
		n := 6 + i%3
		stack := u32(uint32(n))
		for j := range n {
			stack = order.AppendU64(stack, 0x7f10d7f24000+uint64(i%256*16+j))
		}
		b = appendPacket(b, order, wire.BTRC, stack)
		call = padded(u32(1, 0, uint32(1000+i/100), wire.CallFree), "free")
		call = order.AppendU64(order.AppendU32(call, 0), id)
		b = appendPacket(b, order, wire.CALL, call)
		b = appendPacket(b, order, wire.BTRC, u32(0))
	}
	return b, 2 * pairs
}

func readAll(b *testing.B, data []byte) int {
	d, err := New(bytes.NewReader(data), Options{})
	if err != nil {
		b.Fatal(err)
	}
	var rec trace.Record
	calls := 0
	for {
		if err := d.ReadRecord(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				return calls
			}
			b.Fatal(err)
		}
		if rec.Kind == trace.KindCall {
			calls++
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, want := benchTrace(50_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	calls := 0
	for b.Loop() {
		n := readAll(b, data)
		if n != want {
			b.Fatal(fmt.Errorf("read %d calls, want %d", n, want))
		}
		calls += n
	}
	b.ReportMetric(float64(calls)/b.Elapsed().Seconds()/1e6, "Mcalls/s")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls), "ns/call")
}

// Decoding allocates nothing per record.
func TestDecodeDoesNotAllocate(t *testing.T) {
	data, _ := benchTrace(2000)
	d, err := New(bytes.NewReader(data), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rec trace.Record
	for range 100 { // registries, first use of each name
		if err := d.ReadRecord(&rec); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(3000, func() {
		if err := d.ReadRecord(&rec); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}
