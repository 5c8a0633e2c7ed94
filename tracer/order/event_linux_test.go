package order

import (
	"encoding/binary"
	"testing"

	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/plan"
)

// rawEvent writes an event as the programs do, with the offsets in bpf/records.h.
func rawEvent(kind uint8, size int) []byte {
	b := bytesOf(make([]uint64, (size+7)/8))[:size]
	le := binary.LittleEndian
	le.PutUint64(b, 111) // time
	le.PutUint32(b[8:], 222)
	le.PutUint16(b[12:], 3)
	b[14] = kind
	if size >= eventSize {
		le.PutUint64(b[16:], 444)
		le.PutUint64(b[24:], 555)
		le.PutUint64(b[32:], 666)
		le.PutUint32(b[40:], 777)
	}
	if size >= moveEventSize {
		le.PutUint64(b[48:], 888)
		le.PutUint64(b[56:], 999)
	}
	return b
}

func TestDecodeEvents(t *testing.T) {
	want := Event{Time: 111, TID: 222, Function: 3, Addr: 444, Size: 555, Stack: 666, PID: 777}
	for _, kind := range []uint8{KindAlloc, KindFree, KindMoveEnter, KindMoveUndone, kindMaps, KindGrowth} {
		var got Event
		if !decode(rawEvent(kind, eventSize), &got) {
			t.Errorf("kind %d refused", kind)
		}
		want.Kind = kind
		if got != want {
			t.Errorf("kind %d: got %+v, want %+v", kind, got, want)
		}
	}
	var got Event
	if !decode(rawEvent(KindMove, moveEventSize), &got) {
		t.Error("move refused")
	}
	want.Kind, want.Old, want.Entry = KindMove, 888, 999
	if got != want {
		t.Errorf("move: got %+v, want %+v", got, want)
	}
}

func TestDecodeStack(t *testing.T) {
	b := rawEvent(kindStack, stackHeadSize+3*8)
	le := binary.LittleEndian
	le.PutUint64(b[16:], 42)
	le.PutUint16(b[24:], 3)
	b[26], b[27] = byte(object.ProbeStackEndSTACK_TRUNCATED), 1
	for i := range 3 {
		le.PutUint64(b[stackHeadSize+8*i:], uint64(0x1000+i))
	}
	var s StackDef
	if !isStack(b) || !decodeStack(b, &s) {
		t.Fatal("stack refused")
	}
	clear(b) // the frames must be a copy
	if s.Hash != 42 || s.End != object.ProbeStackEndSTACK_TRUNCATED || !s.FramePointer ||
		len(s.Frames) != 3 || s.Frames[0] != 0x1000 || s.Frames[2] != 0x1002 {
		t.Errorf("got %+v", s)
	}
}

func TestDecodeRefuses(t *testing.T) {
	deep := rawEvent(kindStack, stackHeadSize+8)
	binary.LittleEndian.PutUint16(deep[24:], 2)
	for name, b := range map[string][]byte{
		"empty":             {},
		"short head":        rawEvent(KindAlloc, eventSize)[:stackHeadSize-1],
		"short event":       rawEvent(KindAlloc, eventSize)[:eventSize-1],
		"short move":        rawEvent(KindMove, moveEventSize)[:moveEventSize-1],
		"unknown kind":      rawEvent(99, eventSize),
		"kind 0":            rawEvent(0, eventSize),
		"stack as event":    rawEvent(kindStack, stackHeadSize)[:stackHeadSize-8],
		"stack beyond data": deep,
	} {
		var (
			e Event
			s StackDef
		)
		if (isStack(b) && decodeStack(b, &s)) || (!isStack(b) && decode(b, &e)) {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCheckCapabilities(t *testing.T) {
	const all = 1<<host.CapBPF | 1<<host.CapPerfmon | 1<<host.CapSysPtrace
	for name, test := range map[string]struct {
		effective uint64
		want      string
	}{
		"all":              {all, ""},
		"admin and ptrace": {1<<host.CapSysAdmin | 1<<host.CapSysPtrace, ""},
		"none":             {0, "missing privilege CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE"},
		"no perfmon":       {all &^ (1 << host.CapPerfmon), "missing privilege CAP_PERFMON"},
		"admin alone":      {1 << host.CapSysAdmin, "missing privilege CAP_SYS_PTRACE"},
	} {
		got := ""
		if err := host.CheckCapabilities(test.effective); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestParseCPUList(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-1": {0, 1}, "0-2,5,7-8": {0, 1, 2, 5, 7, 8}} {
		got, err := host.ParseCPUList(list)
		if err != nil || len(got) != len(want) {
			t.Errorf("%q: got %v, %v", list, got, err)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: got %v, want %v", list, got, want)
			}
		}
	}
	for _, list := range []string{"", "x", "0-", "1-y"} {
		if got, err := host.ParseCPUList(list); err == nil {
			t.Errorf("%q: got %v, want an error", list, got)
		}
	}
}

func TestOptionsCheck(t *testing.T) {
	good := plan.Options{PID: 1, Depth: plan.DefaultDepth}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(o *plan.Options){
		"pid 0":              func(o *plan.Options) { o.PID = 0 },
		"negative depth":     func(o *plan.Options) { o.Depth = -1 },
		"depth too large":    func(o *plan.Options) { o.Depth = plan.MaxDepth + 1 },
		"ring no power of 2": func(o *plan.Options) { o.RingSize = 3 << 20 },
		"ring too small":     func(o *plan.Options) { o.RingSize = plan.MinRingSize / 2 },
		"ring too large":     func(o *plan.Options) { o.RingSize = plan.MaxRingSize * 2 },
		"min size, no live":  func(o *plan.Options) { o.MinSize, o.NoLive = 1, true },
	} {
		o := good
		change(&o)
		if o.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRingBytesStaysInItsBudget(t *testing.T) {
	for cpus, want := range map[int]int{1: 8 << 20, 2: 8 << 20, 32: 8 << 20, 33: 4 << 20, 64: 4 << 20, 256: 1 << 20, 100000: plan.MinRingSize} {
		if got := (&plan.Options{}).RingBytes(cpus); got != want {
			t.Errorf("%d cpus: %d, want %d", cpus, got, want)
		}
	}
	if got := (&plan.Options{RingSize: 64 << 20}).RingBytes(1000); got != 64<<20 {
		t.Errorf("a given size was changed to %d", got)
	}
}
