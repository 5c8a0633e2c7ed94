package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// windowed is a trace of a busy process, with three windows. Half of the time in windows goes
// into probes.
const windowed = `{"format":"rtrace-jsonl","version":1}
{"kind":"header","pid":7,"clock":"monotonic"}
{"kind":"process","pid":7,"name":"busy"}
{"kind":"resource","pid":7,"id":1,"type":"memory"}
{"kind":"window","time":1000000000,"pid":7,"weight":100,"until":1010000000,"stretch":1000000000,"doubt":100000}
{"kind":"call","time":1000000001,"pid":7,"tid":7,"seq":1,"op":"alloc","function":"malloc","resource":1,"id":"0x4096","size":10}
{"kind":"call","time":1000000002,"pid":7,"tid":7,"seq":2,"op":"alloc","function":"malloc","resource":1,"id":"0x8192","size":10}
{"kind":"window","time":1010000000,"pid":7,"used":10000000,"added":5000000}
{"kind":"window","time":2000000000,"pid":7,"weight":100,"until":2010000000,"stretch":1000000000,"used":1000000000,"added":5000000,"doubt":100000}
{"kind":"call","time":2000000001,"pid":7,"tid":7,"seq":3,"op":"alloc","function":"malloc","resource":1,"id":"0x12288","size":10}
{"kind":"window","time":2010000000,"pid":7,"used":1010000000,"added":10000000}
{"kind":"window","time":3000000000,"pid":7,"weight":100,"until":3010000000,"stretch":1000000000,"used":2000000000,"added":10000000,"doubt":100000}
{"kind":"call","time":3000000001,"pid":7,"tid":7,"seq":4,"op":"alloc","function":"malloc","resource":1,"id":"0x16384","size":10}
{"kind":"window","time":3010000000,"pid":7,"used":2010000000,"added":15000000}
{"kind":"cost","time":4000000000,"pid":7,"used":3000000000,"added":15000000,"tracer":1,"budget":10000,"worst":5000,"covered":3000000000,"longest":10000000}
{"kind":"end","time":4000000000,"pid":7}
`

func windowedTrace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte(windowed), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Four calls with the weight 100 in windows of which probes take the half are 800 calls.
func TestInfoOfWindows(t *testing.T) {
	path := windowedTrace(t)
	code, out, stderr := try(cli.Streams{}, "info", "--json", path)
	if code != cli.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got struct{ Budget *budgetReport }
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Budget == nil {
		t.Fatalf("%v: %s", err, out)
	}
	b := got.Budget
	if e := b.Calls; e.Value != 800 || e.Low >= 700 || e.High <= 900 || e.AtLeast || b.Bytes.Value != 8000 || b.Windows != 3 {
		t.Errorf("%+v", b)
	}
	if len(b.Functions) != 1 || b.Functions[0].Calls != b.Calls {
		t.Errorf("functions: %+v", b.Functions)
	}
	_, out, _ = try(cli.Streams{}, "info", path)
	for _, want := range []string{"malloc: 800 ", "0.50 % of the process's CPU time with a budget of 1.00 %", "not known, since windows miss frees"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "live at") {
		t.Errorf("live blocks are invented:\n%s", out)
	}
}

// Views that need every call refuse a trace of windows, and name what does not.
func TestWindowsAreRefused(t *testing.T) {
	path := windowedTrace(t)
	for _, view := range []string{"leaks", "top", "stats " + path, "stacks", "timeline", "calltree", "allocmap", "postproc", "mptrace", "convert -f folded", "convert -f sprtrace", "convert -f mtrc", "report -o -", "replay", "resolve"} {
		code, out, stderr := try(cli.Streams{}, append(strings.Fields(view), path)...)
		if code == cli.OK || !strings.Contains(stderr, "recorded with --budget") {
			t.Errorf("%s: exit code %d, %q, %s", view, code, stderr, out)
		}
	}
	if code, out, stderr := try(cli.Streams{}, "convert", "-f", "jsonl", path); code != cli.OK || strings.Count(out, `"kind":"window"`) != 6 {
		t.Errorf("convert -f jsonl: exit code %d, %s, %s", code, stderr, out)
	}
}
