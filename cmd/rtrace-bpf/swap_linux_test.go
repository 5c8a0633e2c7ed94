package main

import (
	"path/filepath"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// change is the effect of a call.
type change struct {
	op              string
	old, made, size uint64
}

// TestSwap compares a SWAP trace of a threaded program with the program's log, call by
// call, and checks that it describes the process and its mappings.
func TestSwap(t *testing.T) {
	for name, args := range map[string][]string{"stacks": nil, "kernel": {"--swap-dialect=kernel", "--swap-no-stacks"}} {
		t.Run(name, func(t *testing.T) {
			child := waiting(t, "threads_cxx", "20")
			r := start(t, child, append(args, "--format", "swap")...)
			child.Go()
			report := child.Report()
			r.ends(cli.OK)
			r.says("lost: 0")
			all, err := filepath.Glob(filepath.Join(r.dir, "rtrace-raw-*-0.swap"))
			if err != nil || len(all) != 1 {
				t.Fatalf("traces in the directory: %v, %v", all, err)
			}
			for _, o := range []decoder.Options{{Strict: true, NoSide: true}, {Strict: true}} {
				in, err := decoder.OpenFile(all[0], o)
				if err != nil {
					t.Fatal(err)
				}
				records, err := trace.Load(in)
				if err != nil || in.Close() != nil {
					t.Fatal(err)
				}
				checkSwap(t, records, report, name == "stacks")
				if side := swapSide(t, in); !o.NoSide && side.APIs[424] != "malloc" {
					t.Errorf("the side file has no names of functions: %+v", side)
				}
			}
		})
	}
}

func checkSwap(t *testing.T, records []*trace.Record, report *testutil.Report, stacks bool) {
	t.Helper()
	want, got := map[int32][]change{}, map[int32][]change{}
	for _, c := range report.Done() {
		want[int32(c.TID)] = append(want[int32(c.TID)], change{c.Op, c.Old, c.Ptr, c.Size})
	}
	kinds, deep := map[trace.Kind]int{}, false
	for _, r := range records {
		kinds[r.Kind]++
		c := &r.Call
		if r.Kind != trace.KindCall {
			continue
		}
		deep = deep || len(c.Stack.Frames) > 1
		x := change{op: c.Op.String(), old: c.OldID, made: c.ID, size: c.Size}
		list := got[r.TID]
		if c.Op == trace.OpFree {
			x.old, x.made = c.ID, 0
		} else if n := len(list); n > 0 && c.Function == "realloc" && c.Op == trace.OpAlloc && n < len(want[r.TID])+1 &&
			want[r.TID][n-1].op == "move" && list[n-1].op == "free" {
			// Another thread took the old block before realloc returned.
			x.op, x.old = "move", list[n-1].old
			list = list[:n-1]
		}
		got[r.TID] = append(list, x)
	}
	for tid, list := range want {
		for i := range list {
			if i >= len(got[tid]) || got[tid][i] != list[i] {
				t.Fatalf("thread %d, call %d of %d: want %+v, have %d", tid, i, len(list), list[i], len(got[tid]))
			}
		}
		if len(got[tid]) != len(list) {
			t.Errorf("thread %d: %d calls, want %d", tid, len(got[tid]), len(list))
		}
		delete(got, tid)
	}
	if len(got) > 0 {
		t.Errorf("calls of %d unknown threads", len(got))
	}
	if kinds[trace.KindProcess] != 1 || kinds[trace.KindMapping] < 3 || kinds[trace.KindExit] == 0 || kinds[trace.KindLost] != 0 || deep != stacks {
		t.Errorf("%v, stacks: %v", kinds, deep)
	}
}
