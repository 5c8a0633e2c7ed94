package order

import (
	"testing"
	"unsafe"

	"github.com/cilium/ebpf/btf"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/plan"
)

// Go reads the records through structs that bpf2go made. Their layout must be that of the
// types in the object, without padding, as bpf/records.h promises.
func TestRecordLayout(t *testing.T) {
	spec, err := object.LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		size   uintptr
		fields map[string]uintptr
	}{
		"head": {16, nil},
		"event": {unsafe.Sizeof(object.ProbeEvent{}), map[string]uintptr{
			"addr": unsafe.Offsetof(object.ProbeEvent{}.Addr), "size": unsafe.Offsetof(object.ProbeEvent{}.Size),
			"stack": unsafe.Offsetof(object.ProbeEvent{}.Stack), "pid": unsafe.Offsetof(object.ProbeEvent{}.Pid),
		}},
		"move_event": {unsafe.Sizeof(object.ProbeMoveEvent{}), map[string]uintptr{
			"old": unsafe.Offsetof(object.ProbeMoveEvent{}.Old), "entry_time": unsafe.Offsetof(object.ProbeMoveEvent{}.EntryTime),
		}},
		"stack_record": {unsafe.Sizeof(object.ProbeStackRecord{}), map[string]uintptr{
			"hash": unsafe.Offsetof(object.ProbeStackRecord{}.Hash), "depth": unsafe.Offsetof(object.ProbeStackRecord{}.Depth),
			"frames": unsafe.Offsetof(object.ProbeStackRecord{}.Frames),
		}},
		"target":  {unsafe.Sizeof(object.ProbeTarget{}), nil},
		"process": {unsafe.Sizeof(object.ProbeProcess{}), nil},
		"thread":  {unsafe.Sizeof(object.ProbeThread{}), nil},
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

// Go and C must use the same values for these constants.
func TestSharedNumbers(t *testing.T) {
	if plan.MaxDepth != len(object.ProbeStackRecord{}.Frames) {
		t.Errorf("MaxDepth is %d, the object has room for %d frames", plan.MaxDepth, len(object.ProbeStackRecord{}.Frames))
	}
	kernel := []Loss{LossRingFull, LossState, LossNesting, LossMissedReturn, LossStack, LossArgument, LossLate, LossSideband}
	if len(kernel) != int(object.ProbeLossLOSS_COUNT) {
		t.Errorf("Go knows %d loss reasons of the programs, the object has %d", len(kernel), object.ProbeLossLOSS_COUNT)
	}
	for i, pair := range []struct {
		Go Loss
		C  object.ProbeLoss
	}{
		{LossRingFull, object.ProbeLossLOSS_RING_FULL},
		{LossState, object.ProbeLossLOSS_STATE},
		{LossNesting, object.ProbeLossLOSS_NESTING},
		{LossMissedReturn, object.ProbeLossLOSS_MISSED_RETURN},
		{LossStack, object.ProbeLossLOSS_STACK},
		{LossArgument, object.ProbeLossLOSS_ARGUMENT},
		{LossLate, object.ProbeLossLOSS_LATE},
		{LossSideband, object.ProbeLossLOSS_SIDEBAND},
	} {
		if int(pair.Go) != int(pair.C) {
			t.Errorf("loss reason %d: %d in Go, %d in C", i, pair.Go, pair.C)
		}
	}
	for reason := range LossCount {
		if reason.String() == "" {
			t.Errorf("loss reason %d has no name", reason)
		}
	}
}
