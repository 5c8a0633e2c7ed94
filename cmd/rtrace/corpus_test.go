package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/cli"
)

// Real traces survive conversion to jsonl and back byte for byte, and a dump.
func TestCorpusThroughJSONLines(t *testing.T) {
	// The original writes HINF with 32-bit addresses on 64-bit machines; we
	// never do.
	mended := map[string]bool{"heapinfo.rtrace": true}
	files, err := filepath.Glob("../../testdata/corpus/sp-rtrace/*.rtrace")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		through := func(there, back []string) []byte {
			t.Helper()
			code, text, errOut := try(cli.Streams{}, append(there, path)...)
			if code != cli.OK || errOut != "" {
				t.Errorf("%s: %v: exit code %d, %s", name, there, code, errOut)
			}
			code, again, errOut := try(cli.Streams{In: bytes.NewReader([]byte(text))}, back...)
			if code != cli.OK || errOut != "" {
				t.Errorf("%s: %v: exit code %d, %s", name, back, code, errOut)
			}
			return []byte(again)
		}
		if got := through([]string{"convert", "-f", "jsonl"}, []string{"convert", "-f", "sprtrace"}); bytes.Equal(got, want) == mended[name] {
			t.Errorf("%s through jsonl: equal %v", name, bytes.Equal(got, want))
		}
		if got := through([]string{"dump"}, []string{"undump"}); !bytes.Equal(got, want) {
			t.Errorf("%s is not what its dump was made of", name)
		}
		if code, out, errOut := try(cli.Streams{}, "info", path); code != cli.OK || errOut != "" || out == "" {
			t.Errorf("%s: info: exit code %d, %s", name, code, errOut)
		}
	}
}
