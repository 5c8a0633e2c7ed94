package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// runLogged runs a command line and returns its messages. Each line must be JSON.
func runLogged(t *testing.T, args ...string) (all []map[string]any, code cli.ExitCode) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, args, settings{})
	for line := range strings.Lines(errOut.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: not JSON: %s", args, line)
		}
		all = append(all, m)
	}
	return all, code
}

// With --log-format json, errors of every verb are one record with its hint.
func TestLogOfErrors(t *testing.T) {
	const nobody = "2147483646"
	pid := 2147483646.
	for name, tt := range map[string]struct {
		args []string
		want map[string]any
		code cli.ExitCode
	}{
		"usage":   {[]string{"--log-format=json", "-p", "1", "--nonsense"}, map[string]any{"level": "ERROR", "program": "rtrace-bpf", "hint": "run 'rtrace-bpf --help'"}, cli.Usage},
		"record":  {[]string{"record", "--log-format", "json", "-p", nobody}, map[string]any{"level": "ERROR", "program": "rtrace-bpf", "pid": pid}, cli.Failed},
		"explain": {[]string{"explain", "--log-format=json", "-p", nobody}, map[string]any{"level": "ERROR", "program": "rtrace-bpf explain", "pid": pid}, cli.Failed},
		"top":     {[]string{"top", "--log-format=json", "--batch", "-p", nobody}, map[string]any{"level": "ERROR", "program": "rtrace-bpf top", "pid": pid}, cli.Failed},
		"toggle":  {[]string{"toggle", "--log-format=json", nobody}, map[string]any{"level": "ERROR", "program": "rtrace-bpf toggle", "pid": pid}, cli.Failed},
		"modules": {[]string{"modules", "--log-format=json", "more"}, map[string]any{"level": "ERROR", "program": "rtrace-bpf modules"}, cli.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			got, code := runLogged(t, tt.args...)
			if code != tt.code || len(got) != 1 {
				t.Fatalf("exit code %d, want %d; %v", code, tt.code, got)
			}
			for key, want := range tt.want {
				if got[0][key] != want {
					t.Errorf("%s: %v, want %v", key, got[0][key], want)
				}
			}
			if msg, _ := got[0]["msg"].(string); msg == "" || strings.HasPrefix(msg, "rtrace-bpf") {
				t.Errorf("msg %q", msg)
			}
		})
	}
}

// A recording with something missing has records of each level. The summary is one of them.
func TestLogOfRecording(t *testing.T) {
	testutil.NeedBPF(t)
	leak := testutil.Spawn(t, testutil.Build(t, "leak"))
	leak.Ready()
	dir := t.TempDir()
	// Process 2 is a thread of the kernel, which has no allocator.
	got, code := runLogged(t, "--log-format=json", "-v", "--duration=100ms", "-o", dir+"/", "-p", "2,"+strconv.Itoa(leak.PID))
	if code != cli.Incomplete {
		t.Errorf("exit code %d", code)
	}
	levels, summaries := map[any]int{}, 0
	for _, m := range got {
		levels[m["level"]]++
		if text, ok := m["text"].(string); ok && strings.Contains(text, "\n  lost: 0\n") {
			summaries++
		}
	}
	if levels["INFO"] < 2 || levels["WARN"] < 2 || summaries != 1 {
		t.Errorf("levels %v, %d summaries: %v", levels, summaries, got)
	}
}
