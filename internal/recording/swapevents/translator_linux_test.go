package swapevents

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"testing"

	"rtrace-bpf/internal/linux/machine"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	"rtrace-bpf/tracer/functions"
)

// vector returns the number and the payload of a message in the corpus of SWAP.
func vector(t *testing.T, name string) (id uint32, payload []byte) {
	t.Helper()
	b, err := os.ReadFile("../../../testdata/corpus/swap/" + name + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	const header = 20
	return binary.LittleEndian.Uint32(b), b[header:]
}

// here returns a record with the thread and the CPU of the corpus.
func here() *trace.Record {
	const cpu = 1
	return &trace.Record{PID: 4321, TID: 4322, CPU: cpu + 1}
}

// check compares a record with a message of the corpus. Of the payload it compares length
// bytes, and the rest with tail.
func check(t *testing.T, name string, r *trace.Record, made bool, length int, tail ...byte) {
	t.Helper()
	id, want := vector(t, name)
	want = append(want[:min(length, len(want)):min(length, len(want))], tail...)
	switch {
	case !made || r.Kind != trace.KindOpaque:
		t.Errorf("%s: made %v, %v", name, made, r.Kind)
	case r.Opaque.ID != id || !bytes.Equal(r.Opaque.Data, want):
		t.Errorf("%s: message %#x\n% x, want %#x\n% x", name, r.Opaque.ID, r.Opaque.Data, id, want)
	}
}

const whole = math.MaxInt

// The messages of what a process does are byte for byte those of the corpus.
func TestActivity(t *testing.T) {
	const pc, call = 0x558000001234, 0xffffffff81200000
	openat := &activity.Call{Name: "openat", Class: 1, Address: call}
	var tr Translator
	for _, test := range []struct {
		vector string
		event  activity.Event
		length int
		tail   []byte
	}{
		{"sample", activity.Event{Kind: activity.Sample, PC: pc}, whole, nil},
		{"context_switch_entry", activity.Event{Kind: activity.Off}, whole, nil},
		{"context_switch_exit", activity.Event{Kind: activity.On}, whole, nil},
		// The call of the corpus has three arguments, which follow its CPU.
		{"syscall_entry", activity.Event{Kind: activity.Begin, PC: pc, Call: openat}, 32, []byte{0, 0, 0, 0}},
		{"file_function_entry_open", activity.Event{Kind: activity.Use, User: 4321, TID: 4322, Access: &activity.Access{
			FD: 5, File: 77, Path: "/etc/hostname", Opened: "../etc/hostname",
		}}, whole, nil},
		// Only the first use of a file has its path.
		{"file_function_entry_general", activity.Event{Kind: activity.Use, User: 4321, TID: 4322, Access: &activity.Access{
			FD: 5, File: 77, Event: 2,
		}}, whole, nil},
		{"file_function_exit", activity.Event{Kind: activity.Done, User: 4321, TID: 4322, Result: 64}, whole, nil},
	} {
		r := here()
		check(t, test.vector, r, tr.Activity(&test.event, r), test.length, test.tail...)
	}
	// The end of a call has the head of its beginning, and a result of 64 bits.
	r := here()
	made := tr.Activity(&activity.Event{Kind: activity.End, PC: pc, Call: openat, Result: -2}, r)
	r.Opaque.ID-- // SYSCALL_EXIT follows SYSCALL_ENTRY
	check(t, "syscall_entry", r, made, 32, 'x', 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	if names := tr.Syscalls(); !maps.Equal(names, map[uint64]string{call: "openat"}) {
		t.Errorf("names of system calls: %v", names)
	}
}

// A use of a file belongs to the process that uses it. Its path is N/A if the record that
// had it was lost.
func TestFileOfUnknownPath(t *testing.T) {
	var tr Translator
	r := here()
	r.PID = 1
	if !tr.Activity(&activity.Event{Kind: activity.Use, User: 4321, TID: 4322, Access: &activity.Access{FD: 5, File: 1, Event: 2}}, r) {
		t.Fatal("no message")
	}
	if r.PID != 4321 {
		t.Errorf("the record is of process %d", r.PID)
	}
	if path, _, _ := bytes.Cut(r.Opaque.Data[16:], []byte{0}); string(path) != "N/A" {
		t.Errorf("path %q", path)
	}
}

// The messages of functions that the user named are byte for byte those of the corpus, but
// for arguments and results.
func TestFunction(t *testing.T) {
	const pc, caller = 0x558000005000, 0x558000001234
	var tr Translator
	f := &functions.Function{Place: functions.Place{Library: "libx.so", Symbol: "f"}, Result: 'v'}
	byAddress := &functions.Function{Place: functions.Place{Library: "libx.so", Offset: 0x6000}, Result: 'v'}
	for _, test := range []struct {
		vector string
		event  functions.Event
		length int
		tail   []byte
	}{
		{"function_entry", functions.Event{Kind: functions.Entered, Function: f, PC: pc, Caller: caller}, 28, []byte{0, 0, 0, 0}},
		{"function_exit", functions.Event{Kind: functions.Left, Function: f, PC: pc, Caller: caller}, 28, []byte{'v'}},
		{"fbi_failed", functions.Event{Kind: functions.Looked, Value: &functions.Value{ID: 3}}, whole, nil},
	} {
		r := here()
		check(t, test.vector, r, tr.Function(&test.event, r), test.length, test.tail...)
	}
	if tr.Function(&functions.Event{Kind: functions.Read}, here()) {
		t.Error("a text that is read has a message")
	}
	if !tr.Function(&functions.Event{Kind: functions.Entered, Function: byAddress, PC: pc + 1}, here()) {
		t.Error("a function without a symbol has no message")
	}
	want := map[uint64]string{pc: "f", pc + 1: byAddress.String()}
	if names := tr.Functions(); !maps.Equal(names, want) {
		t.Errorf("names of functions: %v, want %v", names, want)
	}
}

// A state of the machine is byte for byte that of the corpus, but for devices that nobody
// reads on an ordinary machine, which are 0.
func TestSystem(t *testing.T) {
	m := systemOf(&machine.Reading{
		Frequencies: []float32{1800000, 2400000}, Loads: []float32{12.5, 50}, MemoryUsed: 987654321,
		Target: machine.Process{
			Load: machine.Load{ID: 4321, Percent: 7.25}, Virtual: 1000, Resident: 2000, Shared: 3000, PSS: 4000,
			Threads: []machine.Load{{ID: 4322, Percent: 3.5}},
		},
		Others:    []machine.Load{{ID: 1, Percent: 0.5}},
		DriveUsed: 100 << 20,
		Disks:     machine.Disks{Reads: 1, BytesRead: 2, Writes: 3, BytesWritten: 4},
		Network:   machine.Network{Sent: 5, Received: 6},
		Voltage:   15, Brightness: 10,
	})
	m.Target.TotalAlloc = 123456
	r := m.Record(1, 4321)
	id, want := vector(t, "system_2cpu")
	const (
		figures = 100 // where the 21 figures of the machine begin, after one process, thread and other process
		devices = figures + 21*4
	)
	clear(want[devices:])
	for _, unread := range []int{7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19, 20} {
		clear(want[figures+4*unread:][:4])
	}
	if r.Opaque.ID != id || !bytes.Equal(r.Opaque.Data, want) {
		t.Errorf("message %#x\n% x, want %#x\n% x", r.Opaque.ID, r.Opaque.Data, id, want)
	}
}
