package sites

import (
	"testing"

	"rtrace-bpf/trace"
)

func TestMemo(t *testing.T) {
	var m Memo
	asked := 0
	number := func(pid int32, frames ...uint64) int {
		return m.Number(&trace.Record{Kind: trace.KindCall, PID: pid, Call: trace.Call{Stack: trace.Stack{Frames: frames}}}, func(*trace.Record) int {
			asked++
			return 10 * asked
		})
	}
	for i, want := range []struct{ got, number, asked int }{
		{number(1, 5, 6), 10, 1},
		{number(1, 5, 6), 10, 1},
		{number(2, 5, 6), 20, 2},
		{number(1, 5), 30, 3},
		{number(1), 40, 4},
		{number(1), 40, 4},
		{number(1, 5, 6), 10, 4},
		{number(2, 5, 6), 20, 4},
	} {
		if want.got != want.number {
			t.Errorf("%d: number %d, want %d", i, want.got, want.number)
		}
	}
	if asked != 4 {
		t.Errorf("find was called %d times", asked)
	}
	m.Observe(&trace.Record{Kind: trace.KindThread})
	if n := number(1, 5, 6); n != 10 {
		t.Errorf("a thread's name reset the memo: %d", n)
	}
	m.Observe(&trace.Record{Kind: trace.KindMapping})
	if n := number(1, 5, 6); n != 50 {
		t.Errorf("a mapping did not reset the memo: %d", n)
	}
}
