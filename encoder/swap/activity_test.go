package swap_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

// Messages without a record of their own have the fields in the format's tables, with
// which the dump parses them.
func TestActivityMessages(t *testing.T) {
	where := swap.Where{PID: 7, TID: 9, CPU: 3}
	records := []trace.Record{{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockWall}}}
	for _, m := range []swap.Message{
		&swap.Sample{Where: where, PC: 0x1234},
		&swap.Switch{Where: where, PC: 0x10},
		&swap.Switch{Where: where, Runs: true},
		&swap.Syscall{Class: 0x20, Call: swap.Call{Where: where, PC: 0xffffffff81000000, Caller: 0x7f01, Args: []swap.Item{
			{Letter: 'd', Number: 0xffffffffffffff9c},
			{Letter: 's', Text: "/etc/\"x\""},
			{Letter: 'x', Number: 5},
			{Letter: 'p', Number: 0x7fff},
			{Letter: 'c', Number: 'A'},
			{Letter: 'v'},
		}}},
		&swap.Syscall{Class: 1, Call: swap.Call{Where: where, PC: 257, Caller: 0x7f01, Ended: true, Result: swap.Item{Letter: 'x', Number: 1<<64 - 2}}},
		&swap.Function{Call: swap.Call{Where: where, PC: 0x5555, Caller: 0x7f01, Args: []swap.Item{
			{Letter: 'b', Number: 1}, {Letter: 'w', Number: 0x4004000000000000}, {Letter: 's', Text: "x"},
		}}},
		&swap.Function{Call: swap.Call{Where: where, PC: 0x5555, Caller: 0x7f01, Ended: true, Result: swap.Item{Letter: 's', Text: "result"}}},
		&swap.Function{Call: swap.Call{Where: where, PC: 0x5555, Ended: true, Result: swap.Item{Letter: 'v'}}},
		&swap.Variable{ID: 7, Data: []byte{1, 2, 3}},
		&swap.Variable{ID: 8},
	} {
		r := trace.Record{Time: 1_700_000_000 * second}
		swap.Place(&r, m, nil)
		records = append(records, r)
	}
	data, _ := write(t, swap.Options{}, records...)
	want := []string{
		"SAMPLE seq=0 time=1700000000.000000000 pid=7 pc=0x1234 tid=9 cpu=3",
		"CONTEXT_SWITCH_ENTRY seq=1 time=1700000000.000000000 pc=0x10 pid=7 tid=9 cpu=3",
		"CONTEXT_SWITCH_EXIT seq=2 time=1700000000.000000000 pc=0x0 pid=7 tid=9 cpu=3",
		`SYSCALL_ENTRY seq=3 time=1700000000.000000000 pid=7 tid=9 probe_type=0x20 pc=0xffffffff81000000 caller_pc=0x7f01 cpu=3 args=[d:-100 s:"/etc/\"x\"" x:5 p:0x7fff c:65 v]`,
		"SYSCALL_EXIT seq=4 time=1700000000.000000000 pid=7 tid=9 probe_type=0x1 pc=0x101 caller_pc=0x7f01 cpu=3 return=x:-2",
		`FUNCTION_ENTRY seq=5 time=1700000000.000000000 pid=7 tid=9 pc=0x5555 caller_pc=0x7f01 cpu=3 args=[b:1 w:2.5 s:"x"]`,
		`FUNCTION_EXIT seq=6 time=1700000000.000000000 pid=7 tid=9 pc=0x5555 caller_pc=0x7f01 cpu=3 return=s:"result"`,
		"FUNCTION_EXIT seq=7 time=1700000000.000000000 pid=7 tid=9 pc=0x5555 caller_pc=0x0 cpu=3 return=v",
		"FBI seq=8 time=1700000000.000000000 variable_id=7 size=3 data=010203",
		"FBI seq=9 time=1700000000.000000000 variable_id=8 size=0 data=",
	}
	if diff := cmp.Diff(want, dump(t, data)); diff != "" {
		t.Error(diff)
	}
}

// The messages about files are byte for byte those of the corpus.
func TestFileMessages(t *testing.T) {
	for name, m := range map[string]*swap.FileUse{
		"file_function_entry_general": {PID: 4321, TID: 4322, FD: 5, Event: 2, Path: "/etc/hostname"},
		"file_function_entry_open":    {PID: 4321, TID: 4322, FD: 5, Event: swap.FileOpen, Path: "/etc/hostname", Opened: "../etc/hostname"},
		"file_function_exit":          {PID: 4321, TID: 4322, Ended: true, Result: 64},
	} {
		want, err := os.ReadFile("../../testdata/corpus/swap/" + name + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		var r trace.Record
		swap.Place(&r, m, nil)
		const header = 20
		if id := binary.LittleEndian.Uint32(want); r.Opaque.ID != id {
			t.Errorf("%s: message %#x, want %#x", name, r.Opaque.ID, id)
		}
		if diff := cmp.Diff(want[header:], r.Opaque.Data); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	r := trace.Record{Time: 1_700_000_000 * second}
	swap.Place(&r, &swap.FileUse{PID: 7, TID: 9, FD: 3, Event: swap.FileLock, Path: "/x", Lock: swap.Lock{Type: 1, Whence: 2, Start: -3, Length: 1 << 40}}, nil)
	data, _ := write(t, swap.Options{}, trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockWall}}, r)
	want := []string{`FILE_FUNCTION_ENTRY seq=0 time=1700000000.000000000 pid=7 tid=9 fd=3 event_type=14 real_path="/x" args_type=2 lock_type=1 lock_whence=2 lock_start=-3 lock_length=1099511627776`}
	if diff := cmp.Diff(want, dump(t, data)); diff != "" {
		t.Error(diff)
	}
}
