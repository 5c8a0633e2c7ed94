package testutil

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReport(t *testing.T) {
	got, err := ParseReport([]byte("call 7 alloc 0 55d0 24 operator new\n" +
		"call 7 move 55d0 7f00 4096 realloc\n" +
		"call 7 free 7f00 0 0 free\n" +
		"call 7 none 0 0 18446744073709551615 calloc@make:12\n" +
		`{"pid":7,"tids":[7],"functions":{"free":{"calls":1,"bytes":0}},"ops":{"free":1},"ns_per_pair":4.25}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		PID: 7, TIDs: []int{7}, NsPerPair: 4.25,
		Functions: map[string]Count{"free": {Calls: 1}},
		Ops:       map[string]uint64{"free": 1},
		Calls: []Call{
			{TID: 7, Op: "alloc", Function: "operator new", Ptr: 0x55d0, Size: 24},
			{TID: 7, Op: "move", Function: "realloc", Old: 0x55d0, Ptr: 0x7f00, Size: 4096},
			{TID: 7, Op: "free", Function: "free", Old: 0x7f00},
			{TID: 7, Op: "none", Function: "calloc", Caller: "make", Line: 12, Size: 1<<64 - 1},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	if n := len(got.Done()); n != 3 {
		t.Errorf("%d calls had an effect, want 3", n)
	}
	if n := len(got.Live()); n != 0 {
		t.Errorf("%d blocks left, want none", n)
	}
}

func TestParseReportErrors(t *testing.T) {
	counts := `{"pid":7}` + "\n"
	tests := map[string]string{
		"empty":          "",
		"no counts":      "call 7 free 1 0 0 free\n",
		"two reports":    counts + counts,
		"few fields":     "call 7 free 1 0 0\n" + counts,
		"bad thread":     "call x free 1 0 0 free\n" + counts,
		"bad line":       "call 7 free 1 0 0 free@f:x\n" + counts,
		"bad block":      "call 7 free z 0 0 free\n" + counts,
		"bad size":       "call 7 free 1 0 -1 free\n" + counts,
		"unknown member": `{"pid":7,"more":1}` + "\n",
		"not JSON":       "Segmentation fault\n" + counts,
		"cut":            `{"pid":`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if r, err := ParseReport([]byte(text)); err == nil {
				t.Errorf("no error, but %+v", r)
			}
		})
	}
}
