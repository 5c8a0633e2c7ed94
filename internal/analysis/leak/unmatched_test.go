package leak

import (
	"testing"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// checkUnmatched compares Unmatched with Blocks, which counts by the same
// rules.
func checkUnmatched(t *testing.T, ops []byte) {
	t.Helper()
	b, u := live.NewBlocks(), NewUnmatched()
	add := func(r *trace.Record) {
		b.Add(r)
		u.Add(r)
		if b.Unmatched() != u.Count() {
			t.Fatalf("%d unmatched, want %d, after %v of %d", u.Count(), b.Unmatched(), r.Call.Op, r.Call.ID)
		}
	}
	add(resource(1, "memory", false))
	add(resource(2, "segment", true))
	for i := 0; i+2 < len(ops); i += 3 {
		r := &trace.Record{Kind: trace.KindCall, PID: int32(ops[i] >> 7)}
		c := &r.Call
		c.Op = [...]trace.Op{trace.OpAlloc, trace.OpFree, trace.OpAlloc, trace.OpFree, trace.OpMove, trace.OpNone}[ops[i]%6]
		c.Resource, c.ID, c.OldID = uint32(ops[i]>>4&3), uint64(ops[i+1])*uint64(ops[i+2]>>4), uint64(ops[i+2])
		if ops[i+1]%16 == 15 { // does not fit into a word
			c.ID, c.OldID = c.ID<<52, c.OldID<<52
		}
		if ops[i] == 78 {
			// From now on references are counted, or no longer counted.
			r = resource(uint32(ops[i+1]%4), "segment", ops[i+2]%2 == 0)
		}
		if ops[i] == 77 && ops[i+1] < 8 {
			r.Kind = trace.KindExec
		}
		add(r)
	}
	want, _ := b.Live()
	got := 0
	for _, s := range u.sets.All() {
		got += s.size()
		if n, slots := s.words.n, len(s.words.at); n > 4*minSlots && (2*n > slots || 8*n < slots) {
			t.Fatalf("%d words in %d slots", n, slots)
		}
	}
	if got != want {
		t.Fatalf("%d blocks live, want %d", got, want)
	}
}

func FuzzUnmatched(f *testing.F) {
	f.Add([]byte{0, 1, 16, 1, 1, 16, 1, 1, 16})
	f.Add([]byte{32, 1, 16, 32, 1, 16, 33, 1, 16, 33, 1, 16, 33, 1, 16})
	f.Fuzz(checkUnmatched)
}

func TestUnmatched(t *testing.T) {
	x := uint64(1)
	for range 20 {
		ops := make([]byte, 30_000)
		for i := range ops {
			x = x*6364136223846793005 + 1442695040888963407
			ops[i] = byte(x >> 40)
		}
		checkUnmatched(t, ops)
	}
}

// TestUnmatchedMany checks that blocks that come and go leave no memory in use.
func TestUnmatchedMany(t *testing.T) {
	u := NewUnmatched()
	for i := uint64(1); i <= 100_000; i++ {
		u.Add(alloc(i, 1, 16*i, 1))
	}
	if s := u.sets.Of(0); s.size() != 100_000 || len(s.words.at) != 1<<18 {
		t.Errorf("%d keys in %d slots", s.size(), len(s.words.at))
	}
	for i := uint64(1); i <= 100_001; i++ {
		u.Add(free(i, 1, 16*i))
	}
	if s := u.sets.Of(0); s.size() != 0 || len(s.words.at) > 4*minSlots || u.Count() != 1 {
		t.Errorf("%d keys in %d slots, %d unmatched", s.size(), len(s.words.at), u.Count())
	}
}

func BenchmarkUnmatched(b *testing.B) {
	u := NewUnmatched()
	a, f := alloc(1, 1, 0, 100), free(1, 1, 0)
	i := uint64(0)
	for b.Loop() {
		i++
		a.Call.ID = 0x55c900000000 + i*48
		u.Add(a)
		if i%50 != 0 {
			f.Call.ID = a.Call.ID
			u.Add(f)
		}
	}
}
