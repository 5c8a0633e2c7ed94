package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// Texts of a trace cannot control the terminal or start lines of their own in output for
// people.
func TestControlCharacters(t *testing.T) {
	const text = `{"format":"rtrace-jsonl","version":1}
{"kind":"header","format":"x\u001b[31m","arch":"x\u001b[32m","origin":"\u001b[33mo","pointer_size":8}
{"kind":"process","pid":7,"name":"p\u001b[34m\nlost:  0","depth":32}
{"kind":"resource","pid":7,"id":1,"type":"memory\u009b"}
{"kind":"resource","pid":7,"id":2,"type":"memory"}
{"kind":"thread","pid":7,"tid":8,"name":"t\u001b[35m"}
{"kind":"call","pid":7,"tid":8,"op":"alloc","function":"f\u001b[36m","resource":2,"id":"0x10","size":42,"caller":"c\u001b[37m","file":"f\u001b[38m","line":3}
{"kind":"lost","count":1,"reason":"r\u001b[39m\n"}
`
	for _, args := range [][]string{
		{"info"}, {"mptrace", "-v", "-s"}, {"leaks"}, {"leaks", "--by", "function"}, {"leaks", "--by", "thread"}, {"mprof"}, {"timeline"},
	} {
		code, out, errOut := try(cli.Streams{In: strings.NewReader(text)}, args...)
		if code != cli.OK || out == "" || strings.ContainsAny(out+errOut, "\x1b\u009b") || strings.Contains(out, "\nlost:  0") {
			t.Errorf("%v: exit code %d\n%q\n%q", args, code, errOut, out)
		}
	}
}

// Pauses are printed with their total duration, or without it if it is not known.
func TestInfoOfPauses(t *testing.T) {
	const head = `{"format":"rtrace-jsonl","version":1}
{"kind":"header","arch":"x86_64","pointer_size":8,"clock":"monotonic"}
{"kind":"lost","time":5,"count":2,"reason":"ring full","since":4}
`
	for _, test := range []struct{ lines, text, json string }{
		{
			`{"kind":"lost","time":1500000000,"count":1,"reason":"paused","since":500000000}
{"kind":"lost","time":2234567890,"count":1,"reason":"paused","since":2000000000}
`,
			"\nlost:       2: 2 ring full\ngaps:       2 paused (1.235s): nothing was recorded for that long\n", `{"reason":"paused","count":2,"duration":1234567890}`,
		},
		{"{\"kind\":\"lost\",\"count\":1,\"reason\":\"paused\"}\n", "\nlost:       2: 2 ring full\ngaps:       1 paused: nothing was recorded for that long\n", `{"reason":"paused","count":1}`},
	} {
		code, out, errOut := try(cli.Streams{In: strings.NewReader(head + test.lines)}, "info")
		if code != cli.OK || !strings.Contains(out, test.text) {
			t.Errorf("exit code %d\n%s\n%s", code, errOut, out)
		}
		code, out, errOut = try(cli.Streams{In: strings.NewReader(head + test.lines)}, "info", "--json")
		if code != cli.OK || !strings.Contains(strings.Join(strings.Fields(out), ""), test.json) {
			t.Errorf("exit code %d\n%s\n%s", code, errOut, out)
		}
	}
}

// A process and its child write two streams to one file, the first without an end: each has
// its own figures and its own state.
func TestInfoOfStreams(t *testing.T) {
	stream, err := os.ReadFile("../../testdata/corpus/mpatrol/handmade/h_be64.trace")
	if err != nil {
		t.Fatal(err)
	}
	const trailer = 4
	for _, tt := range []struct {
		name     string
		in       string
		code     cli.ExitCode
		complete []bool
	}{
		{"one", string(stream), cli.OK, nil},
		{"two", string(stream) + string(stream), cli.OK, []bool{true, true}},
		{"the first has no end", string(stream[:len(stream)-trailer]) + string(stream), cli.Incomplete, []bool{false, true}},
		{"the second has no end", string(stream) + string(stream[:len(stream)-trailer]), cli.Incomplete, []bool{true, false}},
	} {
		code, out, errOut := try(cli.Streams{In: strings.NewReader(tt.in)}, "info", "--json")
		var got, one report
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if _, alone, _ := try(cli.Streams{In: strings.NewReader(string(stream))}, "info", "--json"); json.Unmarshal([]byte(alone), &one) != nil {
			t.Fatal(alone)
		}
		var complete []bool
		for _, s := range got.Streams {
			complete = append(complete, s.File.Complete)
			if s.Calls != one.Calls || !slices.Equal(s.Resources, one.Resources) {
				t.Errorf("%s: a stream has %d calls, %+v, want %d, %+v", tt.name, s.Calls, s.Resources, one.Calls, one.Resources)
			}
		}
		if code != tt.code || !slices.Equal(complete, tt.complete) || got.Calls != one.Calls || got.File.Complete != (code == cli.OK) {
			t.Errorf("%s: exit code %d, streams %v, %d calls; %s", tt.name, code, complete, got.Calls, errOut)
		}
		code, out, _ = try(cli.Streams{In: strings.NewReader(tt.in)}, "info")
		if code != tt.code || strings.Count("\n"+out, "\nstream: ") != len(tt.complete) ||
			strings.Count(out, "\ncomplete: ") != strings.Count(fmt.Sprint(tt.complete), "false") {
			t.Errorf("%s: exit code %d\n%s", tt.name, code, out)
		}
		if code, _, errOut = try(cli.Streams{In: strings.NewReader(tt.in)}, "convert", "-f", "jsonl"); code != tt.code {
			t.Errorf("%s: convert has exit code %d; %s", tt.name, code, errOut)
		}
	}
}
