package ring

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fakeBPF is a ring in ordinary memory; the test is the producer.
type fakeBPF struct {
	BPF
	memory   []byte // the data, twice in a row as the kernel maps it
	produced atomic.Uint64
	consumed atomic.Uint64
}

func newFakeBPF(size int) *fakeBPF {
	f := &fakeBPF{memory: make([]byte, 2*size)}
	f.data, f.mask = unsafe.Pointer(&f.memory[0]), uint64(size-1)
	f.producer, f.consumer = &f.produced, &f.consumed
	return f
}

// put writes a record at the producer's position.
func (f *fakeBPF) put(flags uint32, data []byte) {
	size := len(f.memory) / 2
	record := make([]byte, headSize, headSize+len(data))
	binary.NativeEndian.PutUint32(record, uint32(len(data))|flags)
	record = append(record, data...)
	pos := f.produced.Load()
	for i, b := range record {
		at := (int(pos) + i) % size
		f.memory[at], f.memory[at+size] = b, b
	}
	f.produced.Store(pos + uint64(len(record)+7)&^7)
}

func TestBPFReadsInOrderAcrossTheEnd(t *testing.T) {
	f := newFakeBPF(64)
	for round := range byte(20) {
		want := bytes.Repeat([]byte{round + 1}, 9+int(round)%16)
		f.put(0, want)
		f.Begin()
		if got := f.Next(); !bytes.Equal(got, want) {
			t.Fatalf("round %d: got %v, want %v", round, got, want)
		}
		if got := f.Next(); got != nil || !f.Caught() {
			t.Fatalf("round %d: %v after the last record", round, got)
		}
		f.Release()
		if f.consumed.Load() != f.produced.Load() {
			t.Fatalf("round %d: %d released, %d produced", round, f.consumed.Load(), f.produced.Load())
		}
	}
}

func TestBPFStopsAtABusyRecordAndSkipsDiscarded(t *testing.T) {
	f := newFakeBPF(256)
	f.put(0, []byte("first"))
	f.put(discardBit, []byte("never"))
	f.put(0, []byte("second"))
	busy := f.produced.Load()
	f.put(busyBit, []byte("third"))
	f.put(0, []byte("fourth"))
	f.Begin()
	for _, want := range []string{"first", "second"} {
		if got := f.Next(); string(got) != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if got := f.Next(); got != nil || f.Caught() || f.Pos() != busy {
		t.Fatalf("got %q at %d; want nothing, waiting at %d", got, f.Pos(), busy)
	}
	f.Release()
	if f.consumed.Load() != busy {
		t.Errorf("%d released, want %d", f.consumed.Load(), busy)
	}
	binary.NativeEndian.PutUint32(f.memory[busy:], 5)
	for _, want := range []string{"third", "fourth"} {
		if got := f.Next(); string(got) != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestBPFReadsNoFurtherThanBegin(t *testing.T) {
	f := newFakeBPF(256)
	f.put(0, []byte("old"))
	f.Begin()
	f.put(0, []byte("new"))
	if got := f.Next(); string(got) != "old" {
		t.Fatalf("got %q", got)
	}
	if got := f.Next(); got != nil {
		t.Fatalf("got %q, which came after Begin", got)
	}
	f.Begin()
	if got := f.Next(); string(got) != "new" {
		t.Fatalf("got %q", got)
	}
}

// A long read gives space back before it ends, but never that of the record that the caller
// holds.
func TestBPFReleasesOnTheWay(t *testing.T) {
	f := newFakeBPF(4 * publishEvery)
	record := make([]byte, 1000)
	for range 3 * publishEvery / 1008 {
		f.put(0, record)
	}
	f.Begin()
	released := false
	for got := f.Next(); got != nil; got = f.Next() {
		if f.consumed.Load() > f.Pos()-1008 {
			t.Fatal("the record in hand was released")
		}
		released = released || f.consumed.Load() > 0
	}
	if !released {
		t.Error("nothing was released on the way")
	}
}

// fakePerf is a perf buffer in ordinary memory.
func fakePerf(size int) (*Perf, *atomic.Uint64) {
	var head, tail atomic.Uint64
	return &Perf{head: &head, tail: &tail, data: make([]byte, size), mask: uint64(size - 1)}, &head
}

func putPerf(p *Perf, head *atomic.Uint64, typ uint32, misc uint16, body []byte) {
	record := make([]byte, perfHeadSize, perfHeadSize+len(body))
	binary.NativeEndian.PutUint32(record, typ)
	binary.NativeEndian.PutUint16(record[4:], misc)
	binary.NativeEndian.PutUint16(record[6:], uint16(perfHeadSize+len(body)))
	for i, b := range append(record, body...) {
		p.data[(head.Load()+uint64(i))&p.mask] = b
	}
	head.Add(uint64(perfHeadSize + len(body)))
}

func TestPerfReadsRecordsThatWrap(t *testing.T) {
	p, head := fakePerf(64)
	var rec Record
	for round := range byte(20) {
		want := bytes.Repeat([]byte{round + 1}, 24)
		putPerf(p, head, unix.PERF_RECORD_COMM, uint16(round), want)
		p.Begin()
		if !p.Next(&rec) || rec.Type != unix.PERF_RECORD_COMM || rec.Misc != uint16(round) || !bytes.Equal(rec.Body, want) {
			t.Fatalf("round %d: got %+v", round, rec)
		}
		if p.Next(&rec) {
			t.Fatalf("round %d: %+v after the last record", round, rec)
		}
		p.Release()
		if p.tail.Load() != head.Load() {
			t.Fatalf("round %d: %d released, %d written", round, p.tail.Load(), head.Load())
		}
	}
}

func TestPerfGivesUpOnSizesThatCannotBe(t *testing.T) {
	for _, size := range []uint16{0, 7, 4000} {
		p, head := fakePerf(64)
		binary.NativeEndian.PutUint16(p.data[6:], size)
		head.Store(16)
		p.Begin()
		var rec Record
		for range 2 {
			if p.Next(&rec) {
				t.Errorf("size %d: got %+v", size, rec)
			}
		}
	}
}

// A buffer is tight as long as the kernel may have lacked space since the Begin before the last
// one.
func TestPerfTight(t *testing.T) {
	p, head := fakePerf(128)
	var rec Record
	for step, test := range []struct {
		put   int // records of 32 bytes
		tight bool
	}{{2, false}, {1, true}, {0, false}, {4, true}, {0, true}, {0, false}} {
		for range test.put {
			putPerf(p, head, unix.PERF_RECORD_COMM, 0, make([]byte, 24))
		}
		p.Begin()
		for p.Next(&rec) {
		}
		if got := p.Tight(64); got != test.tight {
			t.Errorf("step %d: tight: %v, want %v", step, got, test.tight)
		}
		p.Release()
	}
}
