package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// The functions of a perf map that are on stacks are in the trace, or in its side file, when the
// recording ends: the map may be gone when somebody reads the trace.
func TestPerfMapIsKept(t *testing.T) {
	testutil.NeedBPF(t)
	const script = `const fs = require("fs"), kept = [];
function keepBuffer(i) { kept.push(Buffer.alloc(20000 + i)); }
for (let i = 0; i < 100; i++) keepBuffer(i);
fs.writeSync(3, "ready\n"); fs.readSync(4, Buffer.alloc(1));
for (let i = 0; i < 500; i++) keepBuffer(i);`
	rtrace := testutil.BuildCommand(t, "rtrace-bpf/cmd/rtrace")
	for _, format := range []string{"sprtrace", "jsonl"} {
		t.Run(format, func(t *testing.T) {
			child := testutil.Start(t, exec.Command(testutil.Installed(t, "node"), "--perf-basic-prof", "--interpreted-frames-native-stack", "-e", script))
			perfMap := fmt.Sprintf("/tmp/perf-%d.map", child.PID)
			t.Cleanup(func() {
				if err := os.Remove(perfMap); err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
			})
			child.Ready()
			path := filepath.Join(t.TempDir(), "trace")
			r := start(t, child, "--format", format, "-o", path)
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			if err := os.Remove(perfMap); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(rtrace, "stacks", path).Output()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out), "keepBuffer") {
				t.Errorf("no stack of keepBuffer in\n%.4000s", out)
			}
		})
	}
}
