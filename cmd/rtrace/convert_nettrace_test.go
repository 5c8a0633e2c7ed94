package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// A trace in nettrace is the whole trace: converted back to jsonl it is unchanged, in either
// version and without a side file.
func TestConvertNettrace(t *testing.T) {
	const name = "../../testdata/corpus/sp-rtrace/c-leaks.rtrace"
	code, want, errOut := try(cli.Streams{}, "convert", "-f", "jsonl", name)
	if code != cli.OK || strings.Count(want, "\n") < 10 {
		t.Fatalf("exit code %d, %s", code, errOut)
	}
	for _, args := range [][]string{nil, {"--nettrace-version=6"}, {"--nettrace-view=alloctick"}, {"--nettrace-symbols"}} {
		out := filepath.Join(t.TempDir(), "out.nettrace")
		args = append([]string{"convert", "-o", out, name}, args...)
		if code, _, errOut := try(cli.Streams{}, args...); code != cli.OK || errOut != "" {
			t.Fatalf("%v: exit code %d, %s", args, code, errOut)
		}
		if _, err := os.Stat(out + ".side"); err == nil {
			t.Errorf("%v: there is a side file", args)
		}
		if code, got, errOut := try(cli.Streams{}, "convert", "-f", "jsonl", out); code != cli.OK || got != want {
			t.Errorf("%v: exit code %d, %s, %d bytes, want %d", args, code, errOut, len(got), len(want))
		}
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-f", "nettrace", "--nettrace-version=5"}, "--nettrace-version is 4 or 6, not 5"},
		{[]string{"-f", "nettrace", "--nettrace-view=x"}, "--nettrace-view x: not alloctick"},
		{[]string{"-f", "jsonl", "--nettrace-symbols"}, "jsonl is not nettrace"},
	} {
		code, out, errOut := try(cli.Streams{}, append(append([]string{"convert"}, tt.args...), name)...)
		if code != cli.Usage || out != "" || !strings.Contains(errOut, tt.want) {
			t.Errorf("%v: exit code %d, %s", tt.args, code, errOut)
		}
	}
}
