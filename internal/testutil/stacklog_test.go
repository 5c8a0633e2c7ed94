package testutil

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStackLog(t *testing.T) {
	got, err := parseStackLog([]uint64{
		8, 7, 1, 0, 0x55d0, 24, 0x401000, 0x402000,
		7, 9, 3, 0x55d0, 0x7f00, 4096, 0x403000,
		7, 7, 2, 0x7f00, 0, 0, 0x404000,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []LoggedCall{
		{Call{TID: 7, Op: "alloc", Ptr: 0x55d0, Size: 24}, []uint64{0x401000, 0x402000}},
		{Call{TID: 9, Op: "move", Old: 0x55d0, Ptr: 0x7f00, Size: 4096}, []uint64{0x403000}},
		{Call{TID: 7, Op: "free", Old: 0x7f00}, []uint64{0x404000}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
}

func TestParseStackLogErrors(t *testing.T) {
	tests := map[string][]uint64{
		"no frames":    {6, 7, 1, 0, 0x55d0, 24},
		"cut":          {8, 7, 1, 0, 0x55d0, 24, 0x401000},
		"length 0":     {0, 7, 1, 0, 0x55d0, 24, 0x401000},
		"huge":         {1 << 63, 7, 1, 0, 0x55d0, 24, 0x401000},
		"no operation": {7, 7, 0, 0, 0x55d0, 24, 0x401000},
		"unknown":      {7, 7, 4, 0, 0x55d0, 24, 0x401000},
		"no thread":    {7, 0, 1, 0, 0x55d0, 24, 0x401000},
	}
	for name, words := range tests {
		t.Run(name, func(t *testing.T) {
			if log, err := parseStackLog(words); err == nil {
				t.Errorf("no error, but %+v", log)
			}
		})
	}
}

func TestReadStackLog(t *testing.T) {
	path := StackLogPath(t)
	write := func(words ...uint64) {
		var b []byte
		for _, w := range words {
			b = binary.NativeEndian.AppendUint64(b, w)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(3, 1, 2, 0, 0) // the rest of a sparse file
	if words, err := readStackLog(path); err != nil || !cmp.Equal(words, []uint64{1, 2}) {
		t.Errorf("words %v, %v", words, err)
	}
	for _, words := range [][]uint64{nil, {0}, {3, 1}} {
		write(words...)
		if got, err := readStackLog(path); err == nil {
			t.Errorf("%v: no error, but %v", words, got)
		}
	}
}

func TestStackDiff(t *testing.T) {
	name := func(addr uint64) string { return fmt.Sprintf("f%d", addr>>8) }
	same := func(a, b uint64) bool { return a>>8 == b>>8 }
	logged := []uint64{0x110, 0x210, 0x310, 0x410}
	tests := []struct {
		name string
		got  []uint64
		want string // in the text; empty: no difference
	}{
		{"equal", []uint64{0x110, 0x210, 0x310, 0x410}, ""},
		{"another place in the first function", []uint64{0x120, 0x210, 0x310, 0x410}, ""},
		{"another first function", []uint64{0x220, 0x210, 0x310, 0x410}, "!   0 trace  0x220 f2\n      logged 0x110 f1\n"},
		{"another place further out", []uint64{0x110, 0x210, 0x320, 0x410}, "!   2 trace  0x320 f3\n      logged 0x310 f3\n"},
		{"short", []uint64{0x110, 0x210, 0x310}, "!   3 trace  -\n      logged 0x410 f4\n"},
		{"long", []uint64{0x110, 0x210, 0x310, 0x410, 0x510}, "!   4 trace  0x510 f5\n      logged -\n"},
		{"missing frame", []uint64{0x110, 0x310, 0x410}, "frame 1 of 3 differs (logged: 4 frames)\n"},
		{"empty", nil, "frame 0 of 0 differs (logged: 4 frames)\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := StackDiff(test.got, logged, same, name)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got:\n%s\nwant in it:\n%s", got, test.want)
			}
		})
	}
}
