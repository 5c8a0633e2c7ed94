package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// TestMTRCSideFile checks that the side file completes an MTRC trace: with calls of all
// threads, the end of the process and the end of the trace.
func TestMTRCSideFile(t *testing.T) {
	child := waiting(t, "threads_cxx", "3")
	r := start(t, child, "--format", "mtrc", "--mtrc-legacy", "-A")
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	records := load(t, r.mtrcPath())
	tids := map[int32]int{}
	ended := false
	for i, rec := range records {
		if rec.PID != int32(report.PID) && rec.Kind != trace.KindResource && rec.Kind != trace.KindEnd {
			t.Fatalf("record %d, %v, is about process %d", i, rec.Kind, rec.PID)
		}
		switch rec.Kind {
		case trace.KindCall:
			tids[rec.TID]++
			if q := rec.Call.Stack; q.End != trace.StackAbsent {
				t.Fatalf("call %d has a stack without frames: %+v", rec.Call.Seq, q)
			}
		case trace.KindExit:
			ended = ended || rec.Exit.Process
		}
	}
	want := map[int32]int{}
	for thread, list := range logged(report, true) {
		want[int32(thread)] = len(list)
	}
	if diff := cmp.Diff(want, tids); diff != "" {
		t.Errorf("calls by thread (-want +got)\n%s", diff)
	}
	if !ended || records[len(records)-1].Kind != trace.KindEnd {
		t.Errorf("exit of the process: %v, last record %v", ended, records[len(records)-1].Kind)
	}
}

// TestMTRCSideFileSizes checks that the side file has sizes that the legacy form cuts.
func TestMTRCSideFileSizes(t *testing.T) {
	const size = 5 << 29 // bytes of memory that is never touched
	child := waiting(t, "loop", "1", "3", fmt.Sprint(size))
	r := start(t, child, "--format", "mtrc", "--mtrc-legacy")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	// These are the sizes of the blocks, and of the memory for them.
	r.says("mtrc: 6 sizes of 2 GiB and more are written as 2 GiB less a byte")
	records := load(t, r.mtrcPath())
	r.sizes(records, 3, size)
	growth := 0
	for _, rec := range records {
		if rec.Kind == trace.KindHeapGrow {
			growth++
		}
	}
	if _, events := scan(t, r.mtrcPath()); growth != counted(events, wire.Heap) {
		t.Errorf("growth of the heap is in the trace %d times, in the file %d times", growth, counted(events, wire.Heap))
	}
	if err := os.Remove(r.mtrcPath() + ".side"); err != nil {
		t.Fatal(err)
	}
	r.sizes(load(t, r.mtrcPath()), 3, wire.LegacyLimit-1)
}

// sizes checks that there are n allocations, all of one size.
func (r *running) sizes(records []*trace.Record, n int, size uint64) {
	r.t.Helper()
	for _, rec := range records {
		if rec.Kind == trace.KindCall && rec.Call.Op == trace.OpAlloc {
			if n--; rec.Call.Size != size {
				r.t.Errorf("a block of %d bytes, want %d", rec.Call.Size, size)
			}
		}
	}
	if n != 0 {
		r.t.Errorf("%d blocks are missing", n)
	}
}

// TestMTRCSideFileLosses checks that the side file has the losses. Frees of blocks whose
// allocation was lost are dropped, and a block whose free was lost is freed when its
// address is used again.
func TestMTRCSideFileLosses(t *testing.T) {
	child := waiting(t, "loop", "2", "200000")
	r := start(t, child, "--format", "mtrc", "--ring-size", "64k")
	r.Signal(syscall.SIGSTOP)
	child.Go()
	child.Succeed()
	r.Signal(syscall.SIGCONT)
	r.ends(cli.Incomplete)
	_, events := scan(t, r.mtrcPath())
	effects(t, events)
	var calls, lost uint64
	for _, rec := range load(t, r.mtrcPath()) {
		switch rec.Kind {
		case trace.KindCall:
			calls++
		case trace.KindLost:
			lost += rec.Lost.Count
		}
	}
	summary := regexp.MustCompile(`: (\d+) events: .*\n(?s:.*)\n  lost: (\d+) `).FindStringSubmatch(string(r.Stderr()))
	if summary == nil || summary[2] != fmt.Sprint(lost) {
		t.Errorf("%d events are lost according to the trace:\n%s", lost, r.Stderr())
	} else if seen, _ := strconv.ParseUint(summary[1], 10, 64); seen+lost < 800000 || seen+lost > 800010 || lost == 0 {
		// Events of heap growth may be lost as well.
		t.Errorf("%d events seen and %d lost, 800000 calls were made", seen, lost)
	}
	if want := counted(events, wire.Alloc) + counted(events, wire.Realloc) + counted(events, wire.Free); calls != uint64(want) {
		t.Errorf("%d calls are read, %d are in the file", calls, want)
	}
}
