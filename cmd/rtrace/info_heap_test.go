package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// A trace with the state of the heap, as written by rtrace-bpf --heap-info.
const heapTrace = `{"format":"rtrace-jsonl","version":1}
{"kind":"header","arch":"x86_64","pointer_size":8,"clock":"monotonic"}
{"kind":"process","time":5,"pid":7,"name":"p","depth":32}
{"kind":"call","time":6,"pid":7,"tid":7,"seq":1,"op":"alloc","function":"malloc","id":"0x10","size":8}
{"kind":"heapinfo","time":2000000000,"pid":7,"bottom":"0x1000","top":"0x22000","arena":135168,"hblks":1,"hblkhd":266240,"uordblks":100000,"fordblks":35168}
`

const heapComment = `{"kind":"comment","time":6,"pid":7,"text":"of the state of the heap these are not known: ordblks, smblks, keepcost: there are no symbols: none"}
`

// All fields are printed with their units, unknown fields as such with the reason, from any
// source in the trace: a comment, or the side file, also after conversion.
func TestInfoOfHeap(t *testing.T) {
	const (
		known   = "heap:       from 0x1000 to 0x22000, at 2.000 s\n                  135168 arena: bytes that malloc got from the system, without mapped blocks\n                  100000 uordblks: bytes of arena in blocks\n                   35168 fordblks: bytes of arena that are free\n"
		unknown = "                 unknown ordblks: free chunks\n"
		why     = "unknown:    ordblks, smblks, keepcost: there are no symbols: none\n"
		side    = `{"heapinfo":{"time":2000000000,"unknown":["ordblks","smblks","keepcost"],"why":"there are no symbols: none"}}` + "\n"
	)
	dir := t.TempDir()
	path := filepath.Join(dir, "trace")
	if code, _, errOut := try(cli.Streams{In: strings.NewReader(heapTrace)}, "convert", "-f", "sprtrace", "-o", path, "-"); code != cli.OK {
		t.Fatal(errOut)
	}
	f, err := os.OpenFile(path+".side", os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(side)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(dir, "again")
	if code, _, errOut := try(cli.Streams{}, "convert", "-f", "sprtrace", "-o", again, path); code != cli.OK {
		t.Fatal(errOut)
	}
	commented := filepath.Join(dir, "commented")
	if code, _, errOut := try(cli.Streams{In: strings.NewReader(heapTrace + heapComment)}, "convert", "-f", "sprtrace", "-o", commented, "-"); code != cli.OK {
		t.Fatal(errOut)
	}
	for name, test := range map[string]struct {
		in   string
		args []string
		want []string
	}{
		"comment":        {heapTrace + heapComment, nil, []string{known, unknown, why}},
		"side file":      {"", []string{path}, []string{strings.Replace(known, ", at 2.000 s", "", 1), unknown, why}},
		"converted":      {"", []string{again}, []string{unknown, why}},
		"from a comment": {"", []string{commented}, []string{unknown, why}},
		"unsure":         {heapTrace, nil, []string{known, "                       0 ordblks: free chunks\n", "unsure:     a value of 0 may mean unknown"}},
		"json":           {heapTrace + heapComment, []string{"--json"}, []string{`"ordblks": 0,`, `"unknown": [`, `"why": "there are no symbols: none"`, `"fordblks": 35168,`}},
	} {
		s := cli.Streams{}
		if test.in != "" {
			s.In = strings.NewReader(test.in)
		}
		code, out, errOut := try(s, append([]string{"info"}, test.args...)...)
		if code != cli.OK {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: without %q:\n%s", name, want, out)
			}
		}
	}
}
