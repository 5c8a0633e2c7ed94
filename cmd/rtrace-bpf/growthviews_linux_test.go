package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/pprof/profile"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// Each view of a trace of -e growth, and its last snapshot, have the memory that RSS grew by.
func TestGrowthInEveryView(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.Extra(t, "views of growth")
	tool := rtrace(t)
	child := testutil.Spawn(t, testutil.Build(t, "faults"))
	child.Ready()
	before := rssOf(t, child.PID)
	r := start(t, child, "-e", "growth", "-o", "trace", "--snapshot", "100ms", "--snapshot-format", "json")
	trace := filepath.Join(r.dir, "trace")
	testutil.WaitFile(t, trace+".snapshot-0001.json", r.Child)
	child.Go()
	child.Ready()
	grown := rssOf(t, child.PID) - before
	r.Signal(syscall.SIGINT)
	r.ends(cli.OK)
	child.Go()
	child.Succeed()

	check := func(view string, live uint64) {
		t.Helper()
		// A few pages of the program were there before, and are gone, or have a probe.
		if live+1<<16 < grown || live > grown+1<<16 {
			t.Errorf("%s has %d bytes, RSS grew by %d", view, live, grown)
		}
	}
	check("leaks", leaked(t, tool, trace).Bytes)
	lines := topLines(t, []byte(join(snapshots(t, trace, ".json"))))
	last := lines[len(lines)-1].Resources
	if len(last) != 1 || last[0].Type != "resident" {
		t.Fatalf("the last snapshot has %+v", last)
	}
	check("the last snapshot", last[0].Live.Bytes)

	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.Command(tool, args...)
		cmd.Dir = r.dir
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("rtrace %q: %v", args, err)
		}
		return out
	}
	var top struct{ Total struct{ Live topAmount } }
	if err := json.Unmarshal(run("top", "--json", trace), &top); err != nil {
		t.Error(err)
	}
	check("top", top.Total.Live.Bytes)
	p, err := profile.Parse(bytes.NewReader(run("convert", "-f", "pprof", "-o", "-", trace)))
	if err != nil {
		t.Fatal(err)
	}
	var sum uint64
	for _, s := range p.Sample {
		for i, kind := range p.SampleType {
			if kind.Type == "inuse_space" {
				sum += uint64(s.Value[i])
			}
		}
	}
	check("pprof", sum)
	first := trace + ".copy"
	if err := os.Link(trace, first); err != nil {
		t.Fatal(err)
	}
	run("diff", first, trace)
	for _, view := range []string{"report", "timeline"} {
		run(view, "-o", view, trace)
		page, err := os.ReadFile(filepath.Join(r.dir, view))
		if err != nil || len(page) == 0 {
			t.Errorf("%s: %d bytes, %v", view, len(page), err)
		}
	}
	if page, err := os.ReadFile(filepath.Join(r.dir, "report")); !bytes.Contains(page, []byte("touch_written")) {
		t.Errorf("the report does not name touch_written (%v)", err)
	}
}
