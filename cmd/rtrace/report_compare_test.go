package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// versionTrace writes a trace of a program whose functions leave numbers of blocks of a size, from
// sources whose lines begin at first, and whose code is at base.
func versionTrace(t *testing.T, name string, first int, base uint64, blocks map[string][2]int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("{\"format\":\"rtrace-jsonl\",\"version\":1}\n{\"kind\":\"resource\",\"pid\":1,\"id\":1,\"type\":\"memory\"}\n")
	seq := 0
	for function, of := range blocks {
		for range of[0] {
			seq++
			fmt.Fprintf(&b, `{"kind":"call","time":%d,"pid":1,"tid":1,"seq":%d,"op":"alloc","function":"malloc","resource":1,"id":"%#x","size":%d,"stack":["%#x","%#x"],"names":["%s() at prog.c:%d","main() at prog.c:%d"]}`+"\n",
				1000*seq, seq, 64*seq, of[1], base+uint64(len(function)), base+99, function, first+len(function), first+90)
		}
	}
	// A block that is freed is in no figure.
	fmt.Fprintf(&b, `{"kind":"call","time":%d,"pid":1,"tid":1,"seq":%d,"op":"alloc","function":"malloc","resource":1,"id":"0x7","size":5}`+"\n", 1000*seq+1, seq+1)
	fmt.Fprintf(&b, `{"kind":"call","time":%d,"pid":1,"tid":1,"seq":%d,"op":"free","function":"free","resource":1,"id":"0x7"}`+"\n", 1000*seq+2, seq+2)
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The page of two versions of a program has the figures that the traces were made of, by function and
// whatever the lines and addresses, and those of rtrace diff.
func TestReportOfTwo(t *testing.T) {
	before := versionTrace(t, "before.jsonl", 1, 0x1000, map[string][2]int{"cache": {10, 100}, "session": {3, 1000}, "steady": {4, 10}, "removed": {2, 50}})
	after := versionTrace(t, "after.jsonl", 500, 0x9000, map[string][2]int{"cache": {7, 100}, "session": {9, 1000}, "steady": {4, 10}, "added": {1, 77}})
	page, errOut, code := runRtrace("", "report", before, after)
	if code != cli.OK {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	p := parsePage(t, page)
	got := map[string][8]uint64{}
	s := &p.Resources[0].Stacks
	for i, n := range s.Node {
		got[p.Texts[p.Frames.Function[p.Nodes.Frame[n]]]] = [8]uint64(s.Uses[i][:8])
	}
	want := map[string][8]uint64{ // before, after, grown, shrunk
		"cache": {10, 1000, 7, 700, 0, 0, 3, 300}, "session": {3, 3000, 9, 9000, 6, 6000, 0, 0}, "steady": {4, 40, 4, 40, 0, 0, 0, 0},
		"removed": {2, 100, 0, 0, 0, 0, 2, 100}, "added": {0, 0, 1, 77, 1, 77, 0, 0},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("stacks (-want +got):\n%s", d)
	}
	out, errOut, code := runRtrace("", "diff", "--json", before, after)
	if code != cli.OK {
		t.Fatalf("diff: exit code %d: %s", code, errOut)
	}
	var diff diffObject
	if err := json.Unmarshal([]byte(out), &diff); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, u := range got {
		if u[0] != u[2] || u[1] != u[3] {
			changed++
		}
	}
	if len(diff.Groups) != changed {
		t.Errorf("diff has %d groups, the page %d", len(diff.Groups), changed)
	}
	for _, g := range diff.Groups {
		function, _, _ := strings.Cut(g.Name, " ")
		u := got[function]
		if [4]uint64{g.Before.Blocks, g.Before.Bytes, g.After.Blocks, g.After.Bytes} != [4]uint64(u[:4]) {
			t.Errorf("%s: diff has %+v, the page %v", g.Name, g.diffFigures, u)
		}
	}
	total := p.Resources[0].Total
	if [4]uint64(total[:4]) != [4]uint64{diff.Total.Before.Blocks, diff.Total.Before.Bytes, diff.Total.After.Blocks, diff.Total.After.Bytes} {
		t.Errorf("the page has %v in all, diff %+v", total, diff.Total)
	}
	if _, _, code = runRtrace("", "report", before, before); code != cli.Usage {
		t.Errorf("the same trace twice: exit code %d", code)
	}
	if _, _, code = runRtrace("", "report", "-o", after, before, after); code != cli.Usage {
		t.Errorf("onto its own input: exit code %d", code)
	}
}
