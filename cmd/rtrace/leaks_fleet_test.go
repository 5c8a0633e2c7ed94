package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/fleet"
	"rtrace-bpf/internal/cli"
)

// folders returns the folders of fleetHosts in dir.
func folders(dir string) (all []string) {
	for _, host := range fleetHosts {
		all = append(all, filepath.Join(dir, host))
	}
	return all
}

// TestLeaksOfFleet compares the sums of traces with those of each trace alone.
func TestLeaksOfFleet(t *testing.T) {
	dir := t.TempDir()
	made := makeFleet(t, dir)
	all := members{made[0], made[1], made[6], made[7], made[8]} // of two hosts and two services
	args := []string{"leaks", "--folder-is", "host"}
	for _, m := range all {
		args = append(args, m.file)
	}
	var sum amount
	alone := make([]leakObject, len(all))
	for i, m := range all {
		alone[i] = rtraceJSON[leakObject](t, "leaks", m.file)
		sum.add(amount{alone[i].Blocks, alone[i].Bytes})
	}
	for _, per := range []fleet.Per{fleet.PerFleet, fleet.PerTrace, fleet.PerHost, fleet.PerService} {
		want, got := tallies{}, tallies{}
		for i, m := range all {
			of := per.Of(&fleet.Member{File: m.file, Host: m.host, Service: m.service})
			for _, g := range alone[i].Groups {
				want.add([]string{of, frameText(&g.Frames[0])}, 1, g.Blocks, g.Bytes, one(g.Trend != nil && g.Trend.Growing))
			}
		}
		x := rtraceJSON[leakFleetObject](t, append(args, "--per", string(per))...)
		for _, g := range x.Groups {
			growing := 0
			if g.Growing != nil {
				growing = g.Growing.Traces
			}
			got.add([]string{g.Trace + g.Host + g.Service, frameText(&g.Frames[0])}, uint64(g.Traces), g.Blocks, g.Bytes, uint64(growing))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("per %q (-each +together): %s", per, d)
		}
		if x.Count != (fleet.Count{Traces: 5, Hosts: 2, Services: 2}) || x.Blocks != sum.Blocks || x.Bytes != sum.Bytes || len(x.Members) != 5 || x.Growing == 0 {
			t.Errorf("per %q: %+v, want %+v", per, x, sum)
		}
	}
}

func one(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// smallFleet writes traces to the folders web1 and web2 of a new one: two of a program that
// leaks at a line, one that is cut, one with a gap, one in windows, and a file that is none.
func smallFleet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	header := func(program string) string {
		return `{"format":"rtrace-jsonl","version":1}` + "\n" + `{"kind":"header","pid":7,"clock":"monotonic","ends":true}` + "\n" +
			`{"kind":"process","pid":7,"name":"` + program + `"}` + "\n"
	}
	alloc := func(seq, id, size int, name string) string {
		return fmt.Sprintf(`{"kind":"call","time":%d,"pid":7,"tid":7,"seq":%d,"op":"alloc","function":"malloc","id":"0x%d","size":%d,"stack_end":"complete","stack":["0x10"],"names":["%s"]}`+"\n", seq*1000, seq, id, size, name)
	}
	free := func(seq, id int) string {
		return fmt.Sprintf(`{"kind":"call","time":%d,"pid":7,"tid":7,"seq":%d,"op":"free","function":"free","id":"0x%d"}`+"\n", seq*1000, seq, id)
	}
	const end = `{"kind":"end","pid":7}` + "\n"
	for name, text := range map[string]string{
		"web1/a":       header("api") + alloc(1, 100, 10, "f() at a.c:1") + alloc(2, 200, 5, "g() at a.c:2") + alloc(3, 300, 1, "h() at a.c:3") + free(4, 300) + end,
		"web1/readme":  "no trace\n",
		"web2/b":       header("api") + alloc(1, 100, 20, "f() at a.c:1") + free(2, 900) + end,
		"web2/c\x1b[m": header(`sh\u001b[op`) + alloc(1, 100, 3, "f() at a.c:1") + free(2, 900),
		"web2/gap": header("shop") + alloc(1, 100, 7, "i() at b.c:9") + `{"kind":"lost","time":1500,"reason":"paused","count":1,"since":1200}` + "\n" +
			alloc(2, 200, 4, "f() at a.c:1") + free(3, 900) + end,
		"web2/windows": header("shop") + `{"kind":"window","time":5,"pid":7,"weight":1,"until":9}` + "\n" + end,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLeaksOfFleetText: the first lines name traces that are missing, cut or doubtful; nothing
// of a name reaches the terminal as it is.
func TestLeaksOfFleetText(t *testing.T) {
	t.Chdir(smallFleet(t))
	out, errOut, code := runRtrace("", "leaks", "--folder-is", "host", "web1", "web2", "nonesuch", "web1/a")
	const want = `traces: 4, hosts: 2, services: 3; 2 other traces could not be read
still live at the end: 5 blocks (42 bytes)
unknown: 1 block (7 bytes), live when the recording had a gap, in which frees were not recorded; --unknown prints them
no verdict on growth: the traces are too short to know whether a call site grows, or have no frees
not included: web2/windows: the trace was recorded with --budget, and rtrace leaks needs every call
not included: opening nonesuch: no such file or directory
careful: web2/c\x1b[m is incomplete: it has no end: it was cut, or its tracer did not finish; the results cover the part that exists
careful: web2/gap: the recording has 1 gap, of 0.000 s in all: calls in that time are missing

bytes      %  blocks  traces  hosts  services  line
   37  88.10       4       4      2         3  f at a.c:1
    5  11.90       1       1      1         1  g at a.c:2
`
	if d := cmp.Diff(want, out); d != "" || code != cli.Incomplete {
		t.Errorf("exit code %d, %q (-want +got)\n%s", code, errOut, d)
	}
	if strings.ContainsAny(out+errOut, "\x1b") {
		t.Errorf("%q %q", out, errOut)
	}
	out, _, _ = runRtrace("", "leaks", "--per", "trace", "web1", "web2")
	byService, _, _ := runRtrace("", "leaks", "--per", "service", "web1", "web2")
	for _, line := range []string{"web1/a        f at a.c:1", "web1/a        g at a.c:2", "web2/b        f at a.c:1", `web2/c\x1b[m  f at a.c:1`, `sh\x1b[op  f at a.c:1`} {
		if !strings.Contains(out+byService, line) {
			t.Errorf("no %q in\n%s%s", line, out, byService)
		}
	}
}

// TestTopOfFleet compares the sums of traces with those of each trace alone.
func TestTopOfFleet(t *testing.T) {
	dir := t.TempDir()
	all := makeFleet(t, dir)[:6]
	want, got := tallies{}, tallies{}
	add := func(to tallies, service, site string, n int, x *topFigures) {
		to.add([]string{service, site}, uint64(n), x.Allocated.Blocks, x.Allocated.Bytes, x.Temporary.Blocks, x.Live.Bytes, x.Peak.Bytes, x.AtPeak.Bytes)
	}
	calls := uint64(0)
	for _, m := range all {
		x := rtraceJSON[topObject](t, "top", "--by", "line", m.file)
		calls += x.All
		add(want, "", "all", 0, &x.Total)
		for _, g := range x.Groups {
			add(want, m.service, frameText(&g.Frames[0]), 1, &g.topFigures)
		}
	}
	x := rtraceJSON[topFleetObject](t, "top", "--by", "line", "--per", "service", folders(dir)[0])
	add(got, "", "all", 0, &x.Total)
	for _, g := range x.Groups {
		add(got, g.Service, frameText(&g.Frames[0]), g.Traces, &g.topFigures)
	}
	if d := cmp.Diff(want, got); d != "" || x.All != calls || calls == 0 {
		t.Errorf("%d calls, want %d (-each +together): %s", x.All, calls, d)
	}
	text, errOut, code := runRtrace("", "top", "--by", "line", "--top", "1", "--sort", "blocks", folders(dir)[0])
	if code != cli.Incomplete && code != cli.OK || !strings.HasPrefix(text, "traces: 6, hosts: not known, services: 3\ncalls:     ") ||
		!strings.Contains(text, "  at peak  traces  services  line\n") || !strings.Contains(text, "       6         3  f10 at main.c:10\n") {
		t.Errorf("exit code %d, %s\n%s", code, errOut, text)
	}
}

// TestFleetRefuses: what makes no sense for several traces, and what cannot be read.
func TestFleetRefuses(t *testing.T) {
	t.Chdir(smallFleet(t))
	for _, tt := range []struct {
		args string
		code cli.ExitCode
		want string
	}{
		{"leaks --by thread web1 web2", cli.Usage, "--by thread: the threads and processes of several traces have nothing in common\nhint: name one FILE"},
		{"top --by process web1/a web2/b", cli.Usage, "--by process: the threads"},
		{"leaks --addresses web1", cli.Usage, "--addresses: addresses differ from trace to trace"},
		{"leaks --blocks web1", cli.Usage, "--blocks: the blocks of several traces are not listed"},
		{"leaks - web1", cli.Usage, "standard input cannot be one of several traces"},
		{"leaks --per trace", cli.Usage, "--per and --folder-is are for traces in files"},
		{"leaks --per nonsense web1", cli.Usage, "--per nonsense: not one of trace, host, service"},
		{"leaks none1 none2", cli.Failed, "opening none1: no such file or directory"},
		{"top web1/readme web2/windows", cli.Failed, "web1/readme"},
		{"leaks web2/b web2/b --per trace", cli.OK, ""},
		{"leaks web2/b web2/b.side --per trace", cli.OK, ""}, // as a shell writes web2/b*
		{"info web2/b web2/b.side", cli.OK, ""},
	} {
		out, errOut, code := runRtrace("", strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(errOut, tt.want) || (code == cli.OK) == (out == "") {
			t.Errorf("%s: exit code %d, %q, %q", tt.args, code, errOut, out)
		}
		if code == cli.OK && strings.HasPrefix(tt.args, "leaks ") && !strings.HasPrefix(out, "traces: 1, ") {
			t.Errorf("%s: a trace that is named twice counts once: %s", tt.args, out)
		}
	}
}

// TestFleetBuilds: positions without names are the same place only in the same build.
func TestFleetBuilds(t *testing.T) {
	dir := t.TempDir()
	for name, build := range map[string]string{"a": "aaaaaaaa11", "b": "bbbbbbbb22", "c": "aaaaaaaa11"} {
		start := map[string]int{"a": 0x10000, "b": 0x20000, "c": 0x70000}[name]
		text := fmt.Sprintf(`{"format":"rtrace-jsonl","version":1}
{"kind":"header","pid":7,"clock":"monotonic"}
{"kind":"module","pid":7,"path":"/opt/prog","build_id":"%s"}
{"kind":"mapping","pid":7,"start":"0x%x","end":"0x%x","path":"/opt/prog"}
{"kind":"call","time":1,"pid":7,"tid":7,"seq":1,"op":"alloc","function":"malloc","id":"0x10","size":3,"stack_end":"complete","stack":["0x%x"]}
{"kind":"end","pid":7}
`, build, start, start+0x1000, start+0x234)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	x := rtraceJSON[leakFleetObject](t, "leaks", dir)
	if len(x.Groups) != 2 || x.Groups[0].Traces != 2 || x.Groups[0].BuildID != "aaaaaaaa11" || x.Groups[0].Bytes != 6 || x.Groups[1].BuildID != "bbbbbbbb22" || x.Groups[0].Frames[0].Address != "" {
		t.Errorf("%+v", x.Groups)
	}
	if out, _, _ := runRtrace("", "leaks", dir); !strings.Contains(out, "       2  prog+0x234 (build aaaaaaaa)\n") {
		t.Error(out)
	}
}
