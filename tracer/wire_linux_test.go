package tracer

import (
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/btf"
)

// The records are read through Go structs that bpf2go made. This compares them
// with the types in the object, and with the header's promise of no padding.
func TestRecordLayout(t *testing.T) {
	spec, err := loadProbe()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		size   uintptr
		fields map[string]uintptr
	}{
		"head": {16, nil},
		"event": {unsafe.Sizeof(probeEvent{}), map[string]uintptr{
			"addr": unsafe.Offsetof(probeEvent{}.Addr), "size": unsafe.Offsetof(probeEvent{}.Size),
			"stack": unsafe.Offsetof(probeEvent{}.Stack), "pid": unsafe.Offsetof(probeEvent{}.Pid),
		}},
		"move_event": {unsafe.Sizeof(probeMoveEvent{}), map[string]uintptr{
			"old": unsafe.Offsetof(probeMoveEvent{}.Old), "entry_time": unsafe.Offsetof(probeMoveEvent{}.EntryTime),
		}},
		"stack_record": {unsafe.Sizeof(probeStackRecord{}), map[string]uintptr{
			"hash": unsafe.Offsetof(probeStackRecord{}.Hash), "depth": unsafe.Offsetof(probeStackRecord{}.Depth),
			"frames": unsafe.Offsetof(probeStackRecord{}.Frames),
		}},
		"target":  {unsafe.Sizeof(probeTarget{}), nil},
		"process": {unsafe.Sizeof(probeProcess{}), nil},
		"thread":  {unsafe.Sizeof(probeThread{}), nil},
	}
	for name, test := range tests {
		var s *btf.Struct
		if err := spec.Types.TypeByName(name, &s); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if uintptr(s.Size) != test.size {
			t.Errorf("%s: %d bytes in the object, %d in Go", name, s.Size, test.size)
		}
		var end btf.Bits
		for _, m := range s.Members {
			size, err := btf.Sizeof(m.Type)
			if err != nil {
				t.Fatal(err)
			}
			if name != "thread" && m.Offset != end {
				t.Errorf("%s: hole before %s", name, m.Name)
			}
			end = m.Offset + btf.Bits(size*8)
			if want, ok := test.fields[m.Name]; ok && uintptr(m.Offset.Bytes()) != want {
				t.Errorf("%s.%s: at %d in the object, at %d in Go", name, m.Name, m.Offset.Bytes(), want)
			}
		}
	}
}

// The numbers that Go and C share by value.
func TestSharedNumbers(t *testing.T) {
	if MaxDepth != len(probeStackRecord{}.Frames) {
		t.Errorf("MaxDepth is %d, the object has room for %d frames", MaxDepth, len(probeStackRecord{}.Frames))
	}
	kernel := []Loss{LossRingFull, LossState, LossNesting, LossMissedReturn, LossStack, LossArgument, LossLate, LossSideband}
	if len(kernel) != int(probeLossLOSS_COUNT) {
		t.Errorf("Go knows %d loss reasons of the programs, the object has %d", len(kernel), probeLossLOSS_COUNT)
	}
	for i, pair := range []struct {
		Go Loss
		C  probeLoss
	}{
		{LossRingFull, probeLossLOSS_RING_FULL},
		{LossState, probeLossLOSS_STATE},
		{LossNesting, probeLossLOSS_NESTING},
		{LossMissedReturn, probeLossLOSS_MISSED_RETURN},
		{LossStack, probeLossLOSS_STACK},
		{LossArgument, probeLossLOSS_ARGUMENT},
		{LossLate, probeLossLOSS_LATE},
		{LossSideband, probeLossLOSS_SIDEBAND},
	} {
		if int(pair.Go) != int(pair.C) {
			t.Errorf("loss reason %d: %d in Go, %d in C", i, pair.Go, pair.C)
		}
	}
	for reason := range lossCount {
		if reason.String() == "" {
			t.Errorf("loss reason %d has no name", reason)
		}
	}
}
