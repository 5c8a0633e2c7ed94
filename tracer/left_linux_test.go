package tracer

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/record"
)

// Calls that are left by a jump, or do not fit, are counted, each once: recorded and
// lost calls together are those in the program's own log.

// leaving records the program left. Its calls without an effect are the reallocs that it
// left.
func leaving(t *testing.T, build testutil.Builder, change func(o *plan.Options), how string, n int) (*testutil.Report, []*trace.Record, record.Stats) {
	t.Helper()
	child := testutil.Spawn(t, build(t, "left"), how, strconv.Itoa(n))
	child.Ready()
	r := attachTo(t, child.PID, change)
	child.Go()
	report := child.Report()
	records := r.end()
	return report, records, r.tracer.Stats()
}

// leftBlocks returns the old blocks of the reallocs that the program left.
func leftBlocks(report *testutil.Report) map[uint64]bool {
	left := map[uint64]bool{}
	for _, c := range report.Calls {
		if c.Op == "none" {
			left[c.Old] = true
		}
	}
	return left
}

// withoutFreesOf returns the records without frees of these blocks by realloc. On a busy
// machine, a realloc can take so long until it is left that its old block counts as freed.
func withoutFreesOf(records []*trace.Record, blocks map[uint64]bool) []*trace.Record {
	return slices.DeleteFunc(records, func(r *trace.Record) bool {
		return r.Kind == trace.KindCall && r.Call.Op == trace.OpFree && r.Call.Function == "realloc" && blocks[r.Call.ID]
	})
}

// checkLost fails the test unless exactly the losses in want were counted.
func checkLost(t *testing.T, s *record.Stats, want map[order.Loss]int) {
	t.Helper()
	for reason, n := range s.Lost {
		if n != uint64(want[order.Loss(reason)]) {
			t.Errorf("%d × %s, want %d", n, order.Loss(reason), want[order.Loss(reason)])
		}
	}
}

// A call left by longjmp is not taken for the next one in its frame, although realloc
// ends in a jump to malloc, which then has the frame of realloc.
func TestCallsLeftByLongjmp(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for _, way := range ways(t) {
			t.Run(way.name, func(t *testing.T) {
				const n = 100
				report, records, s := leaving(t, build, way.set, "jump", n)
				compare(t, withoutFreesOf(records, leftBlocks(report)), report)
				checkLost(t, &s, map[order.Loss]int{order.LossMissedReturn: n})
			})
		}
	})
}

// Calls that are open at the same time, each in a signal handler of the one before: those
// after the eighth are lost, and so are those that never return.
func TestCallsOpenAtATime(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for _, way := range ways(t) {
			t.Run(way.name, func(t *testing.T) {
				const n, places = 20, 8
				report, all, s := leaving(t, build, func(o *plan.Options) {
					way.set(o)
					o.Ways = plan.WaysReturns // TestPathsInHandlers has the other one
				}, "nest", n)
				recorded := len(all)
				records := withoutFreesOf(all, leftBlocks(report))
				// A malloc has no place from the eighth handler on; its free needs none.
				report.Calls = slices.DeleteFunc(report.Calls, func(c testutil.Call) bool {
					return c.Function == "malloc" && c.Size >= places && c.Size <= n
				})
				compare(t, records, report)
				checkLost(t, &s, map[order.Loss]int{order.LossMissedReturn: places, order.LossNesting: n - places + n - places + 1})
				if want := uint64(n - places + 1 + recorded - len(records)); s.Unmatched != want {
					t.Errorf("%d frees of blocks that the trace has not, want %d", s.Unmatched, want)
				}
			})
		}
	})
}

// A block whose address cannot be read is lost.
func TestUnreadableResult(t *testing.T) {
	testutil.NeedBPF(t)
	if !testutil.Has32Bit() {
		t.Skip("SKIPPED: the program steps itself, as on x86 alone")
	}
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		const n = 30
		report, records, s := leaving(t, build, nil, "hidden", n)
		report.Calls = slices.DeleteFunc(report.Calls, func(c testutil.Call) bool { return c.Function == "posix_memalign" })
		compare(t, records, report)
		checkLost(t, &s, map[order.Loss]int{order.LossArgument: n})
	})
}

// A thread that ends inside a call got no block, so no call is missing.
func TestThreadsThatEndInsideACall(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for _, state := range []plan.State{plan.StateTask, plan.StateHash} {
			t.Run(fmt.Sprintf("state=%d", state), func(t *testing.T) {
				const n = 20
				report, all, s := leaving(t, build, func(o *plan.Options) { o.State = state }, "thread", n)
				records := withoutFreesOf(all, leftBlocks(report))
				checkLost(t, &s, nil)
				made, freed := 0, 0
				live := map[uint64]bool{}
				for _, rec := range ofKind(records, trace.KindCall) {
					c := &rec.Call
					switch {
					case c.Op == trace.OpAlloc && c.Size == 123:
						made++
						live[c.ID] = true
					case c.Op == trace.OpFree && live[c.ID]:
						freed++
						delete(live, c.ID)
					case c.Function == "realloc":
						t.Errorf("call %d: %s %s", c.Seq, c.Op, c.Function)
					}
				}
				if made != n || freed != n {
					t.Errorf("%d blocks made and %d freed, want %d", made, freed, n)
				}
			})
		}
	})
}

// With more threads than places for their state, all calls of the threads without a place
// are lost, each counted once, and no others.
func TestMoreThreadsThanPlaces(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for name, set := range map[string]func(o *plan.Options){
			"hash": func(o *plan.Options) { o.State = plan.StateHash }, "storage": func(o *plan.Options) { o.State, o.Testing.NoStorage = plan.StateTask, true }, "oldest": oldest,
		} {
			t.Run(name, func(t *testing.T) {
				const threads, places, rounds = 8, 3, 200
				child := testutil.Spawn(t, build(t, "alloc"), strconv.Itoa(threads), strconv.Itoa(rounds), "log")
				child.Ready()
				r := attachTo(t, child.PID, func(o *plan.Options) { set(o); o.Testing.FewThreads = places })
				child.Go()
				report := child.Report()
				records := r.end()
				all := calls(records)
				report.Calls = slices.DeleteFunc(report.Calls, func(c testutil.Call) bool { return len(all[c.TID]) == 0 })
				compare(t, records, report)
				s := r.tracer.Stats()
				checkLost(t, &s, map[order.Loss]int{order.LossState: (threads - places) * (5*rounds + 1)})
			})
		}
	})
}

// Events for which the rings have no room are counted, a realloc once, although it has
// two events. A realloc of which only the entry was recorded can look like a free; with
// perf buffers it is then not always counted as lost as well.
func TestRingsTooSmallForReallocs(t *testing.T) {
	testutil.NeedBPF(t)
	for _, buffer := range []plan.Buffer{plan.BufferRing, plan.BufferPerf} {
		t.Run(fmt.Sprintf("buffer=%d", buffer), func(t *testing.T) {
			const threads, rounds = 4, 10_000
			r := overflowing(t, buffer, "alloc", strconv.Itoa(threads), strconv.Itoa(rounds))
			recorded, halves := uint64(0), uint64(0)
			for _, rec := range ofKind(r.end(), trace.KindCall) {
				if rec.Call.Op == trace.OpFree && rec.Call.Function == "realloc" {
					halves++
				} else {
					recorded++
				}
			}
			s := r.tracer.Stats()
			t.Logf("%d recorded, %d halves, lost %v", recorded, halves, s.Lost)
			if s.Lost[order.LossRingFull] == 0 {
				t.Error("nothing was lost: the test does not test")
			}
			if got, made := recorded+s.Lost[order.LossRingFull], uint64(threads*(5*rounds+1)); got > made || got+halves < made {
				t.Errorf("%d recorded and %d lost are %d, %d were made", recorded, s.Lost[order.LossRingFull], got, made)
			}
		})
	}
}
