package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/testutil"
)

// firstSuspect returns the suspects of the first table of rtrace-bpf top that has some, as soon
// as a number of blocks of a function were freed.
func firstSuspect(t *testing.T, child *testutil.Child, function string, freed uint64) *suspectLine {
	t.Helper()
	cmd := command(t, "top", "-p", fmt.Sprint(child.PID), "--json", "--interval", "100ms", "-n", fmt.Sprint(mostTables))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it is done, or the test has failed
		_ = cmd.Wait()
	}()
	tables := bufio.NewScanner(out)
	tables.Buffer(nil, 1<<22)
	for first := true; tables.Scan(); first = false {
		var x suspectLine
		if err := json.Unmarshal(tables.Bytes(), &x); err != nil {
			t.Fatalf("%v after %q", err, tables.Bytes())
		}
		if first {
			child.Go()
		}
		if _, n := x.row(function); n.Blocks >= freed && len(x.Suspects) > 0 {
			return &x
		}
	}
	t.Fatalf("no suspect: %v\n%s", tables.Err(), stderr.Bytes())
	return nil
}

// A C++ program leaks next to a cache that is full. The commands that explain leads to name the
// call of new that leaks, and not the cache.
func TestCulpritCXXLeak(t *testing.T) {
	tool := rtrace(t)
	child := waiting(t, "lru")
	pid := fmt.Sprint(child.PID)
	before := explained(t, cli.OK, "-p", pid)[0]
	v := before.Verdicts[0]
	if v.Topic != explain.AboutLive || !strings.Contains(v.Advice, "rtrace-bpf top -p "+pid) {
		t.Errorf("the verdict is %+v", v)
	}

	r := start(t, child, "-o", "trace")
	const function, turnovers = "cache::put(unsigned long)", 20 * 256
	x := firstSuspect(t, child, function, turnovers)
	const leak = "open_session(unsigned long)"
	if s := x.Suspects[0]; len(x.Suspects) != 1 || s.Function != leak || !s.Growing || !strings.Contains(s.Verdict, "; none of ") {
		t.Errorf("the suspects are %+v", x.Suspects)
	}

	// The program waits: what changes while it is read could be counted twice or not at all. The
	// recording is over by then, since a leak that rests for a second does not grow steadily.
	child.Go()
	child.Ready()
	r.Signal(unix.SIGINT)
	r.ends(cli.OK)
	after := explained(t, cli.OK, "-p", pid)[0]
	after.Since(&before)
	leaked, _ := x.row(leak)
	if d := after.Drift.Rows[0]; d.Kind != explain.Live || d.Size < int64(leaked.Bytes) || d.Count < int64(leaked.Blocks) {
		t.Errorf("the largest change is %+v, want the %+v that leaked", d, leaked)
	}

	child.Go()
	child.Succeed()
	var sessions, size uint64
	if _, err := fmt.Sscanf(string(child.Output()), "sessions %d\nbytes %d", &sessions, &size); err != nil {
		t.Fatal(err)
	}
	const atGate = 4000 // sessions that were opened before the recording
	leaks := growing(t, tool, filepath.Join(r.dir, "trace"))
	if g := leaks[0]; len(leaks) != 1 || g.Blocks != sessions-atGate || g.Bytes != g.Blocks*size || g.Frames[0].Function != leak {
		t.Errorf("these groups grow: %+v, want one of %d blocks of %d bytes by %s", leaks, sessions-atGate, size, leak)
	}
}

// leakGroup is what tests need of a group of rtrace leaks.
type leakGroup struct {
	Blocks, Bytes uint64
	Frames        []struct{ Function string }
}

// growing returns the groups of rtrace leaks that grow. There must be at least one.
func growing(t *testing.T, tool, trace string) []leakGroup {
	t.Helper()
	out, err := exec.Command(tool, "leaks", "-r", "--json", trace).Output()
	if err != nil {
		t.Fatal(err)
	}
	var leaks struct {
		Growing int `json:"growing_groups"`
		Groups  []leakGroup
	}
	if err := json.Unmarshal(out, &leaks); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if leaks.Growing == 0 || len(leaks.Groups) < leaks.Growing {
		t.Fatalf("no group grows:\n%s", out)
	}
	return leaks.Groups[:leaks.Growing]
}
