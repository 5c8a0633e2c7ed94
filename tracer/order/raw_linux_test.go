package order

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// rawRecord writes a raw stack as the programs do, with the given number of bytes of
// data. Each range has a place in the data and a length.
func rawRecord(data int, places ...[2]uint32) []byte {
	b := rawEvent(KindRaw, rawHeadSize+data)
	le := binary.NativeEndian
	var at object.ProbeRawStack
	put := func(offset uintptr, value uint64) { le.PutUint64(b[offset:], value) }
	put(unsafe.Offsetof(at.Hash), 11)
	put(unsafe.Offsetof(at.Pc), 22)
	put(unsafe.Offsetof(at.Sp), 33)
	for i, p := range places {
		put(unsafe.Offsetof(at.Start)+uintptr(8*i), uint64(0x1000*(i+1)))
		le.PutUint32(b[unsafe.Offsetof(at.At)+uintptr(4*i):], p[0])
		le.PutUint32(b[unsafe.Offsetof(at.Length)+uintptr(4*i):], p[1])
	}
	for i := range data {
		b[rawHeadSize+i] = byte(i)
	}
	return b
}

func TestDecodeRaw(t *testing.T) {
	b := rawRecord(40, [2]uint32{0, 16}, [2]uint32{20, 20})
	want := slices.Clone(b[rawHeadSize:])
	var s RawStack
	if !isRaw(b) || isStack(b) || !decodeRaw(b, &process.Machines[0], &s) {
		t.Fatal("raw stack refused")
	}
	clear(b) // the data must be a copy
	if s.Hash != 11 || s.Late || s.Ranges[0].Start != 0x1000 || s.Ranges[1].Start != 0x2000 {
		t.Errorf("got %+v", s)
	}
	if !bytes.Equal(s.Ranges[0].Data, want[:16]) || !bytes.Equal(s.Ranges[1].Data, want[20:]) {
		t.Errorf("copied %v and %v", s.Ranges[0].Data, s.Ranges[1].Data)
	}
	found := map[uint64]bool{}
	for n := range uint64(len(s.Regs.R)) {
		if value, ok := s.Regs.Get(n); ok {
			found[value] = true
		}
	}
	if !found[22] || !found[33] {
		t.Errorf("the program counter or the stack pointer is missing: %+v", s.Regs)
	}
}

// The field for the function's number contains the purpose of a raw stack.
func TestDecodeRawPurpose(t *testing.T) {
	b := rawRecord(0)
	var at object.ProbeEvent
	place := b[unsafe.Offsetof(at.Head.Function):]
	for purpose, late := range map[object.ProbeRawPurpose]bool{object.ProbeRawPurposeRAW_CHECK: false, object.ProbeRawPurposeRAW_LATE: true} {
		binary.NativeEndian.PutUint16(place, uint16(purpose))
		s := RawStack{Late: !late}
		if !decodeRaw(b, &process.Machines[0], &s) || s.Late != late {
			t.Errorf("purpose %d: late is %v", purpose, s.Late)
		}
	}
}

func TestDecodeRawRefuses(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":               {},
		"half a head":         rawRecord(0)[:rawHeadSize/2],
		"head without end":    rawRecord(0)[:rawHeadSize-1],
		"range beyond data":   rawRecord(8, [2]uint32{0, 9}),
		"place beyond data":   rawRecord(8, [2]uint32{9, 0}),
		"second beyond data":  rawRecord(8, [2]uint32{0, 8}, [2]uint32{4, 5}),
		"place and length":    rawRecord(8, [2]uint32{1 << 31, 1 << 31}),
		"length of all there": rawRecord(8, [2]uint32{8, 1<<32 - 8}),
		"largest length":      rawRecord(8, [2]uint32{0, 1<<32 - 1}),
		"largest place":       rawRecord(8, [2]uint32{1<<32 - 1, 0}),
	} {
		var s RawStack
		if decodeRaw(b, &process.Machines[0], &s) {
			t.Errorf("%s: accepted as %+v", name, s.Ranges)
		}
	}
}

// Intake accepts or refuses any record. What it copies lies within the record.
func FuzzIntake(f *testing.F) {
	f.Add(rawRecord(0))
	f.Add(rawRecord(64, [2]uint32{0, 32}, [2]uint32{32, 32}))
	f.Add(rawRecord(8, [2]uint32{4, 5}))
	f.Add(rawRecord(8)[:rawHeadSize-3])
	f.Add(rawEvent(kindStack, stackHeadSize+24))
	f.Add(rawEvent(KindMove, moveEventSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		aligned := bytesOf(make([]uint64, len(b)/8+1))[:len(b)]
		copy(aligned, b)
		var q Queue
		in := Intake{Queue: &q, Machine: &process.Machines[len(b)%len(process.Machines)]}
		in.add(aligned)
		taken := len(q.Events)
		if len(in.Raws) > taken || taken > 1 || len(in.Stacks) > 1 {
			t.Fatalf("%d events, %d stacks and %d raw stacks from one record", taken, len(in.Stacks), len(in.Raws))
		}
		for _, raw := range in.Raws {
			if raw.ID == 0 || raw.ID != q.Events[0].Addr {
				t.Errorf("the event of raw stack %d has number %d", raw.ID, q.Events[0].Addr)
			}
			for _, r := range raw.Ranges {
				if len(r.Data) > 0 && !bytes.Contains(b[rawHeadSize:], r.Data) {
					t.Errorf("range of %d bytes that is not in the record", len(r.Data))
				}
			}
		}
	})
}
