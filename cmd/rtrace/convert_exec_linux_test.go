package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestProfileAfterExec: the main program of a profile, which is its first mapping, is the
// one that ran last, unless the window ends before that one began.
func TestProfileAfterExec(t *testing.T) {
	lines := []string{
		`{"format":"rtrace-jsonl","version":1}`,
		`{"kind":"process","pid":7,"name":"/bin/first"}`,
		`{"kind":"mapping","pid":7,"start":"0x10000","end":"0x20000","path":"/bin/first"}`,
		`{"kind":"call","pid":7,"seq":1,"op":"alloc","function":"malloc","id":"0x10","size":8,"stack":["0x10010"]}`,
		`{"kind":"exec","pid":8,"name":"other"}`,
		`{"kind":"context","id":1,"name":"END"}`,
		`{"kind":"exec","pid":7,"name":"second-with-a-l"}`, // as the kernel cuts it
		`{"kind":"mapping","pid":7,"start":"0x10000","end":"0x20000","path":"/lib/ld.so"}`,
		`{"kind":"mapping","pid":7,"start":"0x30000","end":"0x40000","path":"/bin/second-with-a-long-name"}`,
		`{"kind":"call","pid":7,"seq":2,"op":"alloc","function":"malloc","id":"0x20","size":8,"stack":["0x30010","0x10020"]}`,
	}
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"exec":    {lines, "/bin/second-with-a-long-name"},
		"no exec": {lines[:4], "/bin/first"},
		"another": {lines[:5], "/bin/first"},
	} {
		file := filepath.Join(t.TempDir(), "trace.jsonl")
		if err := os.WriteFile(file, []byte(strings.Join(tt.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(profileOf(t, file, "--value", "alloc_space"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.ParseData(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Mapping) == 0 || p.Mapping[0].File != tt.want {
			t.Errorf("%s: mappings %v, want %s first", name, p.Mapping, tt.want)
		}
	}
}
