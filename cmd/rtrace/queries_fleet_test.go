package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"rtrace-bpf/encoder"
	"rtrace-bpf/trace"
)

// member is a trace of a fleet.
type member struct{ file, host, service, release string }

type members []member

var fleetHosts = []string{"web1", "web2", "web3", "web4"}

// makeFleet writes traces of three services, of two releases on four machines, to a folder
// for each machine.
func makeFleet(t *testing.T, dir string) (f members) {
	t.Helper()
	for i, host := range fleetHosts {
		if err := os.Mkdir(filepath.Join(dir, host), 0o755); err != nil {
			t.Fatal(err)
		}
		for n, service := range []string{"api", "shop", "mail"} {
			for k, release := range []string{"aaaa", "bbbb"} {
				m := member{filepath.Join(dir, host, fmt.Sprintf("%s-%s-%s.jsonl", host, service, release)), host, service, release}
				m.write(t, rand.New(rand.NewPCG(uint64(i), uint64(2*n+k))))
				f = append(f, m)
			}
		}
	}
	return f
}

// recordedRun is a program that is recorded.
type recordedRun struct {
	t       *testing.T
	out     trace.Writer
	time    int64
	seq, id uint64
}

func (w *recordedRun) put(r trace.Record) {
	r.Time, r.PID, r.TID = w.time, 4711, 4711
	if err := w.out.WriteRecord(&r); err != nil {
		w.t.Fatal(err)
	}
}

// call makes a call from a line of a program and returns the block.
func (w *recordedRun) call(op trace.Op, old, size uint64, line int) uint64 {
	w.time++
	w.seq++
	c := trace.Call{Seq: w.seq, Op: op, Function: "malloc", Resource: 1, Size: size, ID: old, Stack: trace.Stack{
		Frames: []uint64{0x1000 + uint64(line), 0x1f00}, Names: []string{fmt.Sprintf("f%d() at main.c:%d", line, line), "main() at main.c:1"}, End: trace.StackComplete,
	}}
	switch op {
	case trace.OpFree:
		c.Function = "free"
	case trace.OpMove:
		c.Function, c.OldID = "realloc", old
		fallthrough
	default:
		w.id += 16
		c.ID = w.id
	}
	w.put(trace.Record{Kind: trace.KindCall, Call: c})
	return c.ID
}

// write records 90 seconds: a leak, a cache of 40 blocks, blocks that are freed at once, a
// buffer that is reallocated, and a block from the start.
func (m *member) write(t *testing.T, rnd *rand.Rand) {
	t.Helper()
	file, err := os.Create(m.file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := encoder.New("jsonl", file, encoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &recordedRun{t: t, out: out, time: 1e9}
	program := "/usr/bin/" + m.service
	w.put(trace.Record{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockMonotonic, WallTime: 1795827600e9, ClockTime: 1e9, Ends: true}})
	w.put(trace.Record{Kind: trace.KindProcess, Process: trace.Process{Name: program, Path: program}})
	w.put(trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}})
	w.put(trace.Record{Kind: trace.KindModule, Module: trace.Module{Path: program, BuildID: m.release}})
	size := func() uint64 { return 1 + rnd.Uint64N(4000) }
	w.call(trace.OpAlloc, 0, size(), 50)
	buffer := w.call(trace.OpAlloc, 0, 64, 40)
	var cache []uint64
	for step := range int64(900) {
		w.time = 1e9 + step*100e6 + 1 + rnd.Int64N(1e6)
		w.call(trace.OpAlloc, 0, size(), 10)
		if m.release == "bbbb" {
			w.call(trace.OpAlloc, 0, size(), 10)
		}
		if cache = append(cache, w.call(trace.OpAlloc, 0, size(), 20)); len(cache) > 40 {
			n := rnd.IntN(len(cache))
			w.call(trace.OpFree, cache[n], 0, 21)
			cache[n] = cache[len(cache)-1]
			cache = cache[:len(cache)-1]
		}
		w.call(trace.OpFree, w.call(trace.OpAlloc, 0, size(), 30), 0, 31)
		if rnd.IntN(10) == 0 {
			buffer = w.call(trace.OpMove, buffer, size(), 40)
		}
		if step%100 == 50 {
			arena := 1e6 + rnd.Uint64N(1e6)
			w.put(trace.Record{Kind: trace.KindHeapInfo, HeapInfo: trace.HeapInfo{Arena: arena, FordBlks: rnd.Uint64N(arena)}})
		}
		if rnd.IntN(300) == 0 {
			w.put(trace.Record{Kind: trace.KindLost, Lost: trace.Lost{Count: 1 + rnd.Uint64N(9), Reason: "ring full"}})
		}
	}
	w.put(trace.Record{Kind: trace.KindEnd})
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}
