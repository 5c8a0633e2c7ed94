package mixes_test

import (
	"testing"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/testutil/mixes"
	"rtrace-bpf/trace"
)

// TestMixes: a mix is the same each time, its calls are in order, no block begins
// at the address of a live one, and what was leaked is live at the end.
func TestMixes(t *testing.T) {
	leaks := 0
	for seed := range uint64(40) {
		m, records := mixes.New(seed)
		again, same := mixes.New(seed)
		var sums [2]uint64
		for i, run := range []func(func(*trace.Record)){records, same} {
			run(func(r *trace.Record) {
				sums[i] = sums[i]*0x9e3779b97f4a7c15 + uint64(r.Time) ^ r.Call.ID ^ r.Call.Size<<32
			})
		}
		if sums[0] != sums[1] || again.Calls != m.Calls {
			t.Errorf("seed %d: two runs differ", seed)
		}
		blocks := live.NewBlocks()
		calls, last, at := 0, int64(0), map[uint64]uint64{}
		records(func(r *trace.Record) {
			blocks.Add(r)
			if r.Kind != trace.KindCall {
				return
			}
			calls++
			if r.Time < last {
				t.Fatalf("seed %d: a call at %d after one at %d", seed, r.Time, last)
			}
			last = r.Time
			if r.Call.Op == trace.OpAlloc {
				at[r.Call.ID] = r.Call.Stack.Frames[0]
			}
		})
		if n, _ := blocks.Replaced(); n != 0 || calls != m.Calls {
			t.Errorf("seed %d: %d blocks replaced, %d calls of %d", seed, n, calls, m.Calls)
		}
		if (blocks.Unmatched() > 0) != m.Attached {
			t.Errorf("seed %d: %d unmatched frees, attached: %v", seed, blocks.Unmatched(), m.Attached)
		}
		if m.Leak == nil {
			continue
		}
		leaks++
		n := 0
		for _, entries := range blocks.All() {
			for e := range entries {
				if at[e.ID] == m.Leak.Site {
					n++
				}
			}
		}
		// A partial leak's site also has blocks that will be freed soon.
		if n < m.Leak.Blocks || m.Leak.Kind != "partial" && n != m.Leak.Blocks || m.Leak.Blocks < 8 {
			t.Errorf("seed %d: %d blocks of the leak are live, want %d (%s)", seed, n, m.Leak.Blocks, m.Leak.Kind)
		}
	}
	if leaks != 20 {
		t.Errorf("%d of 40 leak", leaks)
	}
}

// TestOperations: each call site of an operation has a block for each time that it leaked, and
// these are live at the end.
func TestOperations(t *testing.T) {
	for seed := range uint64(40) {
		m, records := mixes.NewOperations(seed)
		blocks := live.NewBlocks()
		at, last := map[uint64]uint64{}, int64(0)
		records(func(r *trace.Record) {
			blocks.Add(r)
			if r.Time < last {
				t.Fatalf("seed %d: a call at %d after one at %d", seed, r.Time, last)
			}
			last = r.Time
			if r.Kind == trace.KindCall && r.Call.Op == trace.OpAlloc {
				at[r.Call.ID] = r.Call.Stack.Frames[0]
			}
		})
		count, bytes := map[uint64]int{}, map[uint64]uint64{}
		for _, entries := range blocks.All() {
			for e := range entries {
				count[at[e.ID]]++
				bytes[at[e.ID]] += e.Size
			}
		}
		sites := 0
		for _, op := range m.Operations {
			sum := uint64(0)
			for _, s := range op.Sites {
				sites++
				sum += bytes[s]
				// The last runs may not have ended.
				if n := count[s]; n < op.Times-2 || n > op.Times+2 || op.Times < 8 {
					t.Errorf("seed %d, %s: %d blocks of %#x are live, want %d", seed, m.Kind, n, s, op.Times)
				}
			}
			if sum < op.Bytes || len(op.Sites) > 1 != (op.Below != 0) {
				t.Errorf("seed %d, %s: %d bytes live of %+v", seed, m.Kind, sum, op)
			}
		}
		if n := len(m.Operations); sites < 2 || (n > 1) != (m.Kind != "alone") {
			t.Errorf("seed %d: %+v", seed, m)
		}
	}
}
