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
