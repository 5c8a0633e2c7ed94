package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/internal/testutil/browser"
)

// convertTo converts a trace of named functions to a file whose name selects the format.
func convertTo(t *testing.T, file, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	_, errOut, code := runRtrace("", "convert", "-r", "-o", out, file)
	if code != cli.OK && code != cli.Incomplete {
		t.Fatalf("convert %s to %s: %d, %s", file, name, code, errOut)
	}
	return out
}

// heaptrackPrint runs heaptrack_print on a file.
func heaptrackPrint(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = &out, &errOut
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %v: %s", c.Args, err, errOut.String())
	}
	return out.String()
}

// TestHeaptrackReadsCalls compares the sums of heaptrack_print with the program's own figures,
// by the functions that called the allocator. heaptrack's stacks put an inlined function outside
// of the function that it is inlined into, in its own files as well.
func TestHeaptrackReadsCalls(t *testing.T) {
	program := testutil.Installed(t, "heaptrack_print")
	file, truth := selfTrace(t)
	for _, of := range truth {
		of["outer"] += of["inlined_helper"]
		delete(of, "inlined_helper")
	}
	for _, name := range []string{"self.heaptrack", "self.heaptrack.gz"} {
		converted := convertTo(t, file, name)
		for _, tt := range []struct {
			cost string
			want sums
		}{{"allocations", truth[stacks.AllocObjects]}, {"leaked", truth[stacks.InuseSpace]}} {
			folded := filepath.Join(t.TempDir(), "folded")
			heaptrackPrint(t, program, "-f", converted, "-t", "0", "--flamegraph-cost-type", tt.cost, "-F", folded)
			if d := cmp.Diff(tt.want, foldedByInnermost(t, folded)); d != "" {
				t.Errorf("%s, %s (-program +heaptrack):\n%s", name, tt.cost, d)
			}
		}
		if printed := heaptrackPrint(t, program, "-f", converted); !inlinedFirst.MatchString(printed) {
			t.Errorf("%s: inlined_helper is not before the function that it is inlined into:\n%s", name, printed)
		}
	}
}

var inlinedFirst = regexp.MustCompile(`(?m)^inlined_helper\n  at \S+selftrace.cpp:111\n.*\nouter\(unsigned int\)\n  at \S+selftrace.cpp:13\d$`)

// foldedByInnermost adds up a file of folded stacks by their last function.
func foldedByInnermost(t *testing.T, file string) sums {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := sums{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 {
			continue // what has no stack
		}
		frames := strings.Split(strings.TrimSuffix(line[:at], ";"), ";")
		name := strings.TrimSuffix(frames[len(frames)-1], " (selftrace.cpp)")
		got.add(withoutParameters(name), parse(t, line[at+1:]))
	}
	return got
}

var heaptrackTotals = regexp.MustCompile(`calls to allocation functions: (\d+) `)

// TestHeaptrackReadsCorpus has heaptrack_print read traces of the original tools: all their
// allocations arrive, and it complains about no line.
func TestHeaptrackReadsCorpus(t *testing.T) {
	program := testutil.Installed(t, "heaptrack_print")
	files, err := filepath.Glob("../../testdata/corpus/sp-rtrace/*.rtrace")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, file := range files {
		converted := filepath.Join(t.TempDir(), "trace.heaptrack")
		if _, errOut, code := runRtrace("", "convert", "-o", converted, file); code != cli.OK && code != cli.Incomplete {
			t.Logf("%s is not converted: %s", file, errOut)
			continue
		}
		profile, _, _ := runRtrace("", "convert", "-f", "folded", "--value", "alloc_objects", file)
		want := uint64(0)
		for line := range strings.Lines(profile) {
			want += parse(t, line[strings.LastIndexByte(line, ' ')+1:])
		}
		printed := heaptrackPrint(t, program, "-f", converted)
		m := heaptrackTotals.FindStringSubmatch(printed)
		if m == nil || m[1] != fmt.Sprint(want) {
			t.Errorf("%s has %d allocations:\n%s", file, want, tail(printed))
		}
	}
}

func tail(s string) string { return s[max(0, len(s)-600):] }

// dhatPage is where Debian's package valgrind has the viewer of DHAT's files.
const dhatPage = "/usr/libexec/valgrind/dh_view.html"

// TestDHATViewerReadsProfile compares the figures in DHAT's viewer with the program's own, by
// the functions that called the allocator, and looks for those functions in what it shows.
func TestDHATViewerReadsProfile(t *testing.T) {
	testutil.Installed(t, "valgrind")
	file, truth := selfTrace(t)
	profile, err := os.ReadFile(convertTo(t, file, "self.dhat.json"))
	if err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, dhatPage, 1200, 900)
	// What the page does with a file that the user selects, without the dialogue.
	p.Eval(fmt.Sprintf("gData = JSON.parse(%q); buildTree(); displayTree(0, 0, 0)", profile), nil)
	var points []struct {
		TB, TBK, EB, EBK uint64
		Frame            string
	}
	p.Eval("gData.pps.map(x => ({...x, Frame: gData.ftbl[x.fs[0]]}))", &points)
	got := [stacks.Values]sums{{}, {}, {}, {}}
	for _, x := range points {
		name := dhatFrame.ReplaceAllString(x.Frame, "$1")
		for v, n := range map[stacks.Value]uint64{
			stacks.AllocSpace: x.TB, stacks.AllocObjects: x.TBK, stacks.InuseSpace: x.EB, stacks.InuseObjects: x.EBK,
		} {
			got[v].add(withoutParameters(name), n)
		}
	}
	if d := cmp.Diff(truth, got); d != "" {
		t.Errorf("-program +dh_view:\n%s", d)
	}
	var root struct{ Bytes, Blocks uint64 }
	p.Eval("({Bytes: gRoot._totalBytes, Blocks: gRoot._totalBlocks})", &root)
	if want := truth[stacks.AllocSpace].total(); root.Bytes != want {
		t.Errorf("the root of the tree has %d bytes, not %d", root.Bytes, want)
	}
	text := p.Text("body")
	for name := range truth[stacks.AllocSpace] {
		if truth[stacks.AllocSpace][name] > root.Bytes/100 && !strings.Contains(text, name) {
			t.Errorf("the page does not show %s:\n%s", name, text)
		}
	}
	if faults := p.Faults(); len(faults) > 0 {
		t.Errorf("faults of the page: %v", faults)
	}
}

// dhatFrame is a frame with its address and line.
var dhatFrame = regexp.MustCompile(`^0x[0-9A-F]+: (.*?)(?: \([^()]*\))?$`)

func (s sums) total() (n uint64) {
	for _, x := range s {
		n += x
	}
	return n
}
