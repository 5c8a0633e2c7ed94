package nettrace_test

import (
	"bytes"
	"fmt"
	"testing"

	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/trace"
)

const pid = 4711

// program returns the records of a small program: n allocations from sites places by
// threads threads. Every third is moved and every second freed.
func program(n, sites, threads int) []trace.Record {
	const second = int64(1e9)
	all := []trace.Record{
		{Kind: trace.KindHeader, Time: second, PID: pid, Header: trace.Header{
			Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, WallTime: 1794000000123456789, ClockTime: second, Origin: "test",
		}},
		{Kind: trace.KindProcess, Time: second, PID: pid, Process: trace.Process{Name: "/usr/bin/victim -x", WallTime: 1794000000123456789, Depth: 64}},
		{Kind: trace.KindResource, Time: second, PID: pid, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}},
	}
	for i, m := range []struct {
		path, build   string
		start, offset uint64
	}{{"/usr/bin/victim", "0123456789abcdef", 0x401000, 0x1000}, {"/usr/lib/libc.so.6", "fedcba", 0x7f0000001000, 0x28000}} {
		all = append(all,
			trace.Record{Kind: trace.KindModule, Time: second, PID: pid, Module: trace.Module{Path: m.path, BuildID: m.build, Inode: uint64(i + 7), Major: 8, Minor: 1}},
			trace.Record{Kind: trace.KindMapping, Time: second, PID: pid, Mapping: trace.Mapping{
				Start: m.start, End: m.start + 0x10000, Offset: m.offset, Base: m.start - m.offset, Path: m.path,
			}})
	}
	for i := range threads {
		all = append(all, trace.Record{Kind: trace.KindThread, Time: second, PID: pid, TID: int32(pid + i), Thread: trace.Thread{Name: fmt.Sprintf("worker%d", i)}})
	}
	var seq uint64
	call := func(i int, c trace.Call) {
		seq++
		c.Seq, c.Resource = seq, 1
		all = append(all, trace.Record{
			Kind: trace.KindCall, Time: second + int64(seq)*333, PID: pid, TID: int32(pid + i/50%threads), CPU: int32(1 + i/70%2), Call: c,
		})
	}
	for i := range n {
		stack := trace.Stack{End: trace.StackComplete}
		for d := range 6 + i%sites%5 {
			stack.Frames = append(stack.Frames, 0x401010+uint64(i%sites*64+d*16))
		}
		stack.Frames = append(stack.Frames, 0x7f0000001050)
		address := 0x55550000 + uint64(i)*48
		call(i, trace.Call{Op: trace.OpAlloc, Function: "malloc", ID: address, Size: uint64(i % 1000), Stack: stack})
		if i%3 == 0 {
			call(i, trace.Call{
				Op: trace.OpMove, Function: "realloc", ID: address + 16, OldID: address, Size: 2000, Stack: stack,
				EntryTime: second + int64(seq)*333,
			})
			address += 16
		}
		if i%2 == 0 {
			call(i, trace.Call{Op: trace.OpFree, Function: "free", ID: address})
		}
	}
	end := second + int64(seq+1)*333
	return append(all, trace.Record{Kind: trace.KindEnd, Time: end, PID: pid})
}

// encode writes records.
func encode(t testing.TB, records []trace.Record, o nettrace.Options) ([]byte, nettrace.Stats) {
	t.Helper()
	var out bytes.Buffer
	w, err := nettrace.New(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, w, &out, records)
}

// write writes records to out with w.
func write(t testing.TB, w *nettrace.Writer, out *bytes.Buffer, records []trace.Record) ([]byte, nettrace.Stats) {
	t.Helper()
	for i := range records {
		if err := w.WriteRecord(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), w.Stats()
}
