package record

import (
	"maps"
	"testing"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// fedStream returns a stream without a kernel; the test makes its events. All addresses
// below 0x10000 are code.
func fedStream() *Stream {
	s := connected(7)
	s.calls.functions = []string{"malloc"}
	s.threads = newRoster(nil, 0)
	s.warn = func(string, ...any) {}
	s.program.ended = func(uint32) {}
	s.mappings.file = func(process.Mapping) process.FileInfo { return process.FileInfo{} }
	s.mappings.moved = func(process.Mapping, process.FileInfo) {}
	s.mappings.current = []process.Mapping{{Start: 0, End: 0x10000}}
	s.stacks.copies = newCopies(&process.Target{Machine: &process.Machines[0]}, &plan.Options{Depth: 8, Unwind: plan.UnwindEH}, &s.mappings)
	return s
}

// passAlloc passes an allocation with a stack to the stream and returns its recorded
// stack.
func (s *Stream) passAlloc(stack uint64) trace.Stack {
	var r trace.Record
	s.record(&order.Event{Kind: order.KindAlloc, Stack: stack}, &r)
	return r.Call.Stack
}

// Stacks are counted by end, those with frame-pointer steps also separately, and failed
// ones by reason.
func TestStatsOfStacks(t *testing.T) {
	stream := fedStream()
	frames := func(n uint64) []uint64 { return []uint64{0x1000, 0x2000 + n} }
	for n, def := range []struct {
		calls        int
		end          object.ProbeStackEnd
		framePointer bool
	}{
		{1, object.ProbeStackEndSTACK_COMPLETE, false},
		{2, object.ProbeStackEndSTACK_COMPLETE, true},
		{3, object.ProbeStackEndSTACK_TRUNCATED, false},
		{4, object.ProbeStackEndSTACK_TRUNCATED, true},
		{5, object.ProbeStackEndSTACK_NO_RULE, false},
		{6, object.ProbeStackEndSTACK_NO_RULE, true},
		{7, object.ProbeStackEndSTACK_BAD_POINTER, true},
		{8, object.ProbeStackEndSTACK_UNMAPPED, false},
		{9, object.ProbeStackEndSTACK_BAD_FRAME, false},
		{10, object.ProbeStackEndSTACK_UNREADABLE, false},
		{11, object.ProbeStackEndSTACK_HELPER, true},
	} {
		hash := uint64(n + 1)
		stream.stacks.byHash[hash] = &order.StackDef{Hash: hash, Frames: frames(hash), End: def.end, FramePointer: def.framePointer}
		for range def.calls {
			stream.passAlloc(hash)
		}
	}
	for range 12 {
		stream.passAlloc(999) // its definition was lost
	}
	for range 13 {
		stream.passAlloc(0)
	}
	s := stream.Summary()
	want := [5]uint64{trace.StackUnknown: 11, trace.StackComplete: 1 + 2, trace.StackTruncated: 3 + 4, trace.StackFailed: 5 + 6 + 7 + 8 + 9 + 10 + 12}
	if s.Stacks != want {
		t.Errorf("by end %d, want %d", s.Stacks, want)
	}
	want = [5]uint64{trace.StackUnknown: 11, trace.StackComplete: 2, trace.StackTruncated: 4, trace.StackFailed: 6 + 7}
	if s.FramePointer != want {
		t.Errorf("by frame pointer %d, want %d", s.FramePointer, want)
	}
	reasons := map[string]uint64{"no-rule": 5 + 6, "frame-pointer": 7, "unmapped": 8, "bad-frame": 9, "unreadable": 10, "lost": 12}
	if !maps.Equal(s.Broken, reasons) {
		t.Errorf("by reason %v, want %v", s.Broken, reasons)
	}
	if s.DistinctStacks != 11 || s.Calls != 66+12+13 {
		t.Errorf("%d distinct stacks of %d calls", s.DistinctStacks, s.Calls)
	}
	s.Broken["no-rule"] = 0
	if stream.Summary().Broken["no-rule"] == 0 {
		t.Error("the stream still uses the map that Summary returned")
	}
}

// Stacks that differ only in their hash count as one; with another end a stack is another
// one.
func TestStatsOfDistinctStacks(t *testing.T) {
	stream := fedStream()
	for hash, end := range map[uint64]object.ProbeStackEnd{
		1: object.ProbeStackEndSTACK_COMPLETE, 2: object.ProbeStackEndSTACK_COMPLETE, 3: object.ProbeStackEndSTACK_TRUNCATED,
	} {
		stream.stacks.byHash[hash] = &order.StackDef{Hash: hash, Frames: []uint64{0x1000, 0x2000}, End: end}
		stream.passAlloc(hash)
	}
	if n := stream.Summary().DistinctStacks; n != 2 {
		t.Errorf("%d stacks, want 2", n)
	}
	if defs := stream.stacks.byHash; defs[1] != defs[2] || defs[1] == defs[3] {
		t.Error("equal stacks have two definitions, or different stacks share one")
	}
}

// A stack copy is unwound when its event comes, and for that event alone.
func TestStatsOfLateStacks(t *testing.T) {
	stream := fedStream()
	raw := &order.RawStack{ID: 5, Late: true, Hash: 77}
	for n := range uint64(len(raw.Regs.R)) {
		raw.Regs.Set(n, 0x500000) // not in code
	}
	stream.stacks.raws[5] = raw
	for range 2 { // the second time the copy is gone
		stream.record(&order.Event{Kind: order.KindRaw, Addr: 5}, &trace.Record{})
	}
	got := stream.passAlloc(77)
	if len(got.Frames) != 1 || got.Frames[0] != 0x500000 || got.End != trace.StackFailed || got.Reason != reasonUnmapped {
		t.Errorf("got %#x %s %q", got.Frames, got.End, got.Reason)
	}
	if again := stream.passAlloc(77); again.Reason != "lost" {
		t.Errorf("another event has the stack as well: %+v", again)
	}
	if s := stream.Summary(); s.Late != 1 || s.Broken[reasonUnmapped] != 1 || s.Verified != 0 {
		t.Errorf("late %d, broken %v", s.Late, s.Broken)
	}
}

// The verifier checks stacks only while no table may be wrong.
func TestStatsOfCheckedStacks(t *testing.T) {
	s := fedStream()
	s.stacks.coverage.tables = true
	s.stacks.verifier = &verifier{copies: s.stacks.copies, log: t.Logf}
	check := func() {
		raw := &order.RawStack{ID: 1, Hash: 7}
		for n := range uint64(len(raw.Regs.R)) {
			raw.Regs.Set(n, 0x500000)
		}
		s.stacks.raws[1] = raw
		s.stacks.byHash[7] = &order.StackDef{Hash: 7, Frames: []uint64{0x400000}, End: object.ProbeStackEndSTACK_NO_RULE}
		s.record(&order.Event{Kind: order.KindRaw, Addr: 1}, &trace.Record{})
	}
	s.stacks.coverage.replaced(10)
	check()
	if got := s.Summary(); got.Verified != 0 || got.VerifyDiffers != 0 {
		t.Errorf("after an exec %d were checked, %d differ", got.Verified, got.VerifyDiffers)
	}
	s.stacks.coverage.installed(nil, 11)
	check()
	if got := s.Summary(); got.Verified != 1 || got.VerifyDiffers != 1 {
		t.Errorf("%d checked, %d differ, want 1 each", got.Verified, got.VerifyDiffers)
	}
}

// The work is that of the last report, and a raw stack that was lost does not count.
func TestStatsOfWork(t *testing.T) {
	stream := fedStream()
	for n := range uint64(2) {
		stream.sides.waiting[n] = order.Side{Kind: order.SideWork, Work: order.Work{Walks: n + 1, Searches: n + 2, Unchecked: n + 3}}
		stream.record(&order.Event{Kind: order.KindSide, Addr: n}, &trace.Record{})
	}
	stream.record(&order.Event{Kind: order.KindRaw, Addr: 123}, &trace.Record{})
	if s := stream.Summary(); s.Work != (order.Work{Walks: 2, Searches: 3, Unchecked: 4}) || s.Late != 0 {
		t.Errorf("got %+v, late %d", s.Work, s.Late)
	}
}
