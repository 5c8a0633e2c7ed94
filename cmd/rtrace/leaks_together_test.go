package main

import (
	"encoding/json"
	"strings"
	"testing"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// together writes the trace of a program whose function open leaks a block at each of three
// call sites, 40 times at irregular intervals in a minute. Another function below serve leaks
// more than each of these, but less than all.
func together(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	w := jsonl.New(&out)
	put := func(r *trace.Record) {
		if err := w.WriteRecord(r); err != nil {
			t.Fatal(err)
		}
	}
	put(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Clock: trace.ClockMonotonic, PointerSize: 8}})
	put(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory"}})
	seq, frames := uint64(0), []uint64{0, 0x500, 0x600, 0x700}
	call := func(ms int64, site, size uint64, names ...string) {
		seq++
		frames[0] = site
		r := trace.Record{Kind: trace.KindCall, PID: 1, TID: 1, Time: 1e9 + ms*1e6, Call: trace.Call{Seq: seq, Op: trace.OpAlloc, Function: "malloc", Resource: 1, ID: seq * 64, Size: size}}
		r.Call.Stack = trace.Stack{Frames: frames[:1:1], Names: names, End: trace.StackComplete}
		r.Call.Stack.Frames = append(r.Call.Stack.Frames, frames[len(frames)-len(names)+1:]...)
		put(&r)
	}
	for i := range int64(40) {
		at := i*1500 + i*i%11*60
		call(at, 1, 100, "open() at a.c:1", "serve() at a.c:9", "accept() at a.c:20", "main() at a.c:30")
		call(at+1, 2, 200, "open() at a.c:2", "serve() at a.c:9", "accept() at a.c:20", "main() at a.c:30")
		call(at+2, 3, 300, "open() at a.c:3", "serve() at a.c:9", "accept() at a.c:20", "main() at a.c:30")
		call(i*1500+900-i*i%7*100, 4, 400, "log() at a.c:4", "accept() at a.c:21", "main() at a.c:30")
	}
	call(60_000, 5, 1, "main() at a.c:31")
	seq++
	put(&trace.Record{Kind: trace.KindCall, PID: 1, TID: 1, Time: 62e9, Call: trace.Call{Seq: seq, Op: trace.OpFree, Function: "free", Resource: 1, ID: (seq - 1) * 64}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestLeaksTogether: call sites that leak together are one suspect, which comes before a faster
// one of its parts, with its parts below, in text, JSON and the page.
func TestLeaksTogether(t *testing.T) {
	input := together(t)
	run := func(args ...string) string {
		t.Helper()
		out, errOut, code := runRtrace(input, args...)
		if code != cli.OK || errOut != "" {
			t.Fatalf("%v: exit code %d: %s", args, code, errOut)
		}
		return out
	}
	// In 60 s, 40 × 600 B and 40 × 400 B are leaked: 400 B/s and 15.6 KiB/min on average, but
	// the rate is the median of slopes.
	const (
		title = "3 call sites below open, 3 blocks and 600 B each time"
		words = "growing 2 blocks/s, 399 B/s, steady since the start; none of 120 freed"
		other = "growing 40 blocks/min, 15.7 KiB/min, steady since the start; none of 40 freed"
	)
	text := run("leaks", "-n", "1")
	const want = `growing steadily: 2 suspects of 4 groups, printed first

bytes      %  blocks  stack
24000  60.00     120  ` + words + `
                      ` + title + `:

12000  30.00      40    open at a.c:3

 8000  20.00      40    open at a.c:2

 4000  10.00      40    open at a.c:1

16000  40.00      40  ` + other + `
                      log at a.c:4
`
	if _, got, _ := strings.Cut(text, "\n"); got != want {
		t.Errorf("%s\nwant:\n%s", got, want)
	}
	var x leakObject
	if err := json.Unmarshal([]byte(run("leaks", "--json")), &x); err != nil {
		t.Fatal(err)
	}
	if len(x.Suspects) != 2 || x.Suspects[0].Text != title || x.Suspects[0].Verdict != words || x.Suspects[0].Below != "open" || x.Suspects[0].Sites != 3 || x.Suspects[0].Bytes != 24000 ||
		len(x.Suspects[0].Groups) != 3 || x.Suspects[1].Verdict != other || len(x.Suspects[1].Groups) != 1 || x.Suspects[1].Groups[0] != 3 || x.Growing != 4 || x.Groups[3].Frames[0].Function != "log" {
		t.Errorf("%+v", x.Suspects)
	}
	// By function the parts are one group, and the order is the same.
	var y leakObject
	if err := json.Unmarshal([]byte(run("leaks", "--json", "--by", "function")), &y); err != nil {
		t.Fatal(err)
	}
	if len(y.Suspects) != 2 || y.Suspects[0].Verdict != words || y.Suspects[0].Text != "" || y.Groups[0].Frames[0].Function != "open" {
		t.Errorf("by function: %+v", y.Suspects)
	}
	page := run("report", "--resolve=false", "-o", "-")
	last := 0
	for _, text := range []string{"3 call sites below open</bdi>", "3 blocks and 600 B each time", "Growing 2 blocks/s", ">at a.c:3<", ">at a.c:2<", ">at a.c:1<", ">log</bdi>"} {
		at := strings.Index(page, text)
		if at < last {
			t.Errorf("%q is at %d of the page, after %d", text, at, last)
		}
		last = at
	}
}
