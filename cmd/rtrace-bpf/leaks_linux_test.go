package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// This is the main use from end to end: which blocks leaked, and where, by name.
func TestLeaksByName(t *testing.T) {
	tool := rtrace(t)
	child := waiting(t, "leak")
	r := start(t, child, "-q")
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	cmd := exec.Command(tool, "postproc", "-l", "-r", fmt.Sprintf("rtrace-raw-%d-0", child.PID))
	cmd.Dir = r.dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("rtrace postproc: %v\n%s", err, out)
	}
	call := regexp.MustCompile(`(?m)^\d+\. \[[^]]*\] \w+\((\d+)\) = 0x[0-9a-f]+\n((?:\t.*\n)+)`)
	got := map[string]uint64{}
	blocks := 0
	for _, m := range call.FindAllStringSubmatch(string(out), -1) {
		blocks++
		size, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for frame := range strings.Lines(m[2]) {
			_, text, _ := strings.Cut(strings.TrimSpace(frame), " ")
			if name, rest, _ := strings.Cut(text, "()"); strings.HasPrefix(name, "alloc_") && strings.HasPrefix(rest, " from ") {
				got[name] += size
				break
			}
		}
	}
	var total uint64
	for function, size := range report.Leaks {
		total += size
		if got[function] != size {
			t.Errorf("%s leaked %d bytes, rtrace reports %d", function, size, got[function])
		}
	}
	if want := fmt.Sprintf("# %d block(s) leaked with total size of %d bytes\n", blocks, total); !strings.HasSuffix(string(out), want) {
		t.Errorf("the last line is not %q:\n%s", want, out)
	}
}
