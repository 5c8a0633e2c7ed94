package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// TestDemo checks that the output of `make run` has at most 40 lines, and ends with the
// leak of the traced program and the path of the page about it, with and without lost
// events. If the tracer fails, the output quotes it.
func TestDemo(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Installed(t, "python3")
	programs := t.TempDir()
	for _, name := range []string{"rtrace", "rtrace-bpf"} {
		if err := os.Rename(filepath.Join(built(t, name), name), filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		tracer string // a script in the tracer's place; empty for the tracer
		code   int
		want   string
	}{
		"complete": {code: 0, want: "lost: 0"},
		"losses":   {tracer: `"%s" "$@"; exit 3`, code: 0, want: "exit status 3: the calls counted as lost are missing"},
		"failure":  {tracer: `exec "%s" --nonsense`, code: 2, want: "--nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := programs
			if test.tracer != "" {
				bin = t.TempDir()
				script := fmt.Sprintf("#!/bin/sh\n"+test.tracer+"\n", filepath.Join(programs, "rtrace-bpf"))
				if err := os.WriteFile(filepath.Join(bin, "rtrace-bpf"), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(filepath.Join(programs, "rtrace"), filepath.Join(bin, "rtrace")); err != nil {
					t.Fatal(err)
				}
			}
			dir := filepath.Join(t.TempDir(), "demo")
			cmd := exec.Command(".ci/demo", dir)
			cmd.Dir = testutil.Root(t)
			cmd.Env = append(os.Environ(), "BIN="+bin)
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != test.code {
				t.Fatalf("%v, want exit status %d\n%s", err, test.code, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if len(lines) > 40 || !strings.Contains(string(out), test.want) {
				t.Errorf("%d lines, want at most 40 with %q\n%s", len(lines), test.want, out)
			}
			if test.code != 0 {
				return
			}
			page := filepath.Join(dir, "report.html")
			last := lines[max(0, len(lines)-10):]
			has := func(text string) bool {
				return slices.ContainsFunc(last, func(line string) bool { return strings.Contains(line, text) })
			}
			if !has("deflateInit2_") || !has(page) {
				t.Errorf("the last ten lines do not have the leak and the page\n%s", out)
			}
			if info, err := os.Stat(page); err != nil || info.Size() == 0 {
				t.Errorf("the page: %v", err)
			}
		})
	}
}
