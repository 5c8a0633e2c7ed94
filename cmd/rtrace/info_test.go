package main

import (
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// Texts of a trace do not steer the terminal, nor make lines of their own, in
// what is for people to read.
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

// Pauses are shown with how long they were together; without that where it is not
// known.
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
			"\nlost:       2: 2 ring full\ngaps:       2 paused (1.235s): nothing was recorded for so long\n", `{"reason":"paused","count":2,"duration":1234567890}`,
		},
		{"{\"kind\":\"lost\",\"count\":1,\"reason\":\"paused\"}\n", "\nlost:       2: 2 ring full\ngaps:       1 paused: nothing was recorded for so long\n", `{"reason":"paused","count":1}`},
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
