package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// TestNettraceNamesFunctions checks that a trace in nettrace names the process and the
// functions of its stacks for other readers, and that it has its end.
func TestNettraceNamesFunctions(t *testing.T) {
	for _, version := range []string{"4", "6"} {
		t.Run(version, func(t *testing.T) {
			child := waiting(t, "alloc", "1", "100")
			r := start(t, child, "--format", "nettrace", "--nettrace-version", version, "-q")
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			path := filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.nettrace", child.PID))
			if _, err := os.Stat(path + ".side"); err == nil {
				t.Error("there is a side file, and nothing for it")
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"run", filepath.Base(testutil.Build(t, "alloc"))} {
				// Strings of Universal.System: a 16-bit length and the bytes.
				if !bytes.Contains(data, append([]byte{byte(len(name)), 0}, name...)) {
					t.Errorf("%q is not named", name)
				}
			}
			in, err := decoder.Open(bytes.NewReader(data), decoder.Options{Strict: true})
			if err != nil {
				t.Fatal(err)
			}
			all, err := trace.Load(in)
			if err != nil || all[len(all)-1].Kind != trace.KindEnd {
				t.Errorf("%d records, %v", len(all), err)
			}
		})
	}
}
