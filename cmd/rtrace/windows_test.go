package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// windowed returns a trace of a busy process, with six windows. Half of the time in windows goes
// into probes. The first window has two calls, the others have one.
func windowed() string {
	const second = 1_000_000_000
	var b strings.Builder
	b.WriteString(`{"format":"rtrace-jsonl","version":1}
{"kind":"header","pid":7,"clock":"monotonic"}
{"kind":"process","pid":7,"name":"busy"}
{"kind":"resource","pid":7,"id":1,"type":"memory"}
`)
	calls := 0
	for n := 1; n <= 6; n++ {
		from, used, added := n*second, (n-1)*second, (n-1)*5_000_000
		fmt.Fprintf(&b, `{"kind":"window","time":%d,"pid":7,"weight":100,"until":%d,"stretch":%d,"used":%d,"added":%d,"doubt":100000}`+"\n", from, from+10_000_000, second, used, added)
		for ; calls <= n; calls++ {
			fmt.Fprintf(&b, `{"kind":"call","time":%d,"pid":7,"tid":7,"seq":%d,"op":"alloc","function":"malloc","resource":1,"id":"%#x","size":10}`+"\n", from+1+calls, calls+1, (calls+1)<<12)
		}
		fmt.Fprintf(&b, `{"kind":"window","time":%d,"pid":7,"used":%d,"added":%d}`+"\n", from+10_000_000, used+10_000_000, added+5_000_000)
	}
	b.WriteString(`{"kind":"cost","time":7000000000,"pid":7,"used":6000000000,"added":30000000,"tracer":1,"budget":10000,"worst":5000,"covered":6000000000,"longest":10000000}
{"kind":"end","time":7000000000,"pid":7}
`)
	return b.String()
}

func windowedTrace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, []byte(windowed()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Seven calls with the weight 100 in windows of which probes take the half are 1,400 calls.
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
	if e := b.Calls; e.Value != 1400 || e.Low >= 1200 || e.High <= 1600 || e.AtLeast || b.Bytes.Value != 14000 || b.Windows != 6 {
		t.Errorf("%+v", b)
	}
	if len(b.Functions) != 1 || b.Functions[0].Calls != b.Calls {
		t.Errorf("functions: %+v", b.Functions)
	}
	_, out, _ = try(cli.Streams{}, "info", path)
	for _, want := range []string{"malloc: 1,400 ", "0.50 % of the process's CPU time with a budget of 1.00 %", "cost:       about 0.50 % (0.38 to 0.63) more CPU time than without tracing; estimated: tracing took 30ms of 6s\n", "not known, since windows miss frees"} {
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
	for _, view := range []string{"leaks", "stats " + path, "stacks", "timeline", "calltree", "allocmap", "postproc", "mptrace", "convert -f dhat", "convert -f heaptrack", "heapmap", "convert -f sprtrace", "convert -f mtrc", "replay", "resolve"} {
		code, out, stderr := try(cli.Streams{}, append(strings.Fields(view), path)...)
		if code == cli.OK || !strings.Contains(stderr, "recorded with --budget") {
			t.Errorf("%s: exit code %d, %q, %s", view, code, stderr, out)
		}
	}
	if code, out, stderr := try(cli.Streams{}, "convert", "-f", "jsonl", path); code != cli.OK || strings.Count(out, `"kind":"window"`) != 12 {
		t.Errorf("convert -f jsonl: exit code %d, %s, %s", code, stderr, out)
	}
}
