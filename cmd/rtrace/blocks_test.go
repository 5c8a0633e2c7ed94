package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder"
	"rtrace-bpf/trace"
)

// TestCallReader checks that records for every thread, or every growth of the heap, are not
// passed on to readers that keep records other than calls.
func TestCallReader(t *testing.T) {
	text := fmt.Sprintln(`{"format":"rtrace-jsonl","version":1}`) + `
{"kind":"resource","resource":1,"type":"memory"}
{"kind":"thread","pid":1,"tid":2,"name":"worker"}
{"kind":"heapgrow","address":"0x1000","size":4096}
{"kind":"call","seq":1,"op":"alloc","resource":1,"id":"0x10","size":5}
{"kind":"exit","pid":1,"tid":2}
{"kind":"comment","comment":"text"}
{"kind":"lost","count":3}
{"kind":"mapping","start":"0x1000","end":"0x2000","path":"/a"}
{"kind":"unmapping","start":"0x1000","end":"0x2000","path":"/a"}
{"kind":"exec","pid":1,"name":"b"}
{"kind":"end"}
`
	in, err := decoder.Open(strings.NewReader(strings.ReplaceAll(text, "\n\n", "\n")), decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calls := newCallReader(in, memoryType)
	var got []trace.Kind
	var rec trace.Record
	for err = nil; err == nil; {
		if err = calls.ReadRecord(&rec); err == nil {
			got = append(got, rec.Kind)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	want := []trace.Kind{trace.KindResource, trace.KindCall, trace.KindMapping, trace.KindUnmapping, trace.KindExec}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kinds (-want +got):\n%s", d)
	}
	if calls.stats.lost != 3 || calls.stats.threads[threadKey{1, 2}] != "worker" || len(calls.stats.mappings) != 1 {
		t.Errorf("%+v", calls.stats)
	}
}
