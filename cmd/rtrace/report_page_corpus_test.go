package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/cli"
)

// pageData is the part of a page's data that these tests read.
type pageData struct {
	Texts  []string
	Frames struct {
		Function, File, Address, Inlined []int
		Line                             []uint64
	}
	Nodes     struct{ Parent, Frame []int }
	Resources []pageResource
}

type pageResource struct {
	usage.Calls
	Type   string
	Total  [10]uint64
	Stacks struct {
		Node []int
		Uses [][10]uint64
	}
}

// pageOf runs rtrace report and returns the data of the page.
func pageOf(t *testing.T, file string, args ...string) *pageData {
	t.Helper()
	out, errOut, code := runRtrace("", append([]string{"report", "--resolve=false", file}, args...)...)
	if code != cli.OK && code != cli.Incomplete {
		t.Fatalf("report %s: exit code %d: %s", file, code, errOut)
	}
	return parsePage(t, out)
}

func parsePage(t *testing.T, page string) *pageData {
	t.Helper()
	var p pageData
	parseData(t, page, &p)
	return &p
}

// parseData parses the data of a page.
func parseData(t *testing.T, page string, into any) {
	t.Helper()
	_, text, _ := strings.Cut(page, `<script type="application/json" id="data">`)
	text, _, ok := strings.Cut(text, "</script>")
	if !ok {
		t.Fatalf("no data in %.300s", page)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// leaked returns the stacks of a page that have live blocks, each as a text.
func (p *pageData) leaked(resource int) (out []string) {
	s := p.Resources[resource].Stacks
	for i, n := range s.Node {
		if s.Uses[i][0] == 0 {
			continue
		}
		var frames []string
		for ; n > 0; n = p.Nodes.Parent[n] {
			f, name := p.Nodes.Frame[n], ""
			if name = p.Texts[p.Frames.Function[f]]; name == "" && p.Frames.Address[f] > 0 {
				name = p.Texts[p.Frames.Address[f]]
			}
			frames = append(frames, fmt.Sprint(name, p.Texts[p.Frames.File[f]], p.Frames.Line[f]))
		}
		out = append(out, fmt.Sprint(s.Uses[i][0], s.Uses[i][1], frames))
	}
	slices.Sort(out)
	return out
}

// leakStacks returns the same for rtrace leaks.
func leakStacks(x leakObject) (out []string) {
	for _, g := range x.Groups {
		var frames []string
		for _, f := range g.Frames {
			name := f.Function
			if name == "" {
				name = f.Position
			}
			if name == "" && f.Address != "" {
				name = "0x" + strings.TrimLeft(strings.TrimPrefix(f.Address, "0x"), "0")
			}
			frames = append(frames, fmt.Sprint(name, f.File, f.Line))
		}
		out = append(out, fmt.Sprint(g.Blocks, g.Bytes, frames))
	}
	slices.Sort(out)
	return out
}

// TestReportLikeLeaks: the page has the leaks of rtrace leaks, stack by stack, for every
// resource of every trace.
func TestReportLikeLeaks(t *testing.T) {
	var files []string
	for _, pattern := range []string{spRtraceCorpus + "/*.rtrace", spRtraceCorpus + "/synthetic/*.rtrace", spRtraceCorpus + "/out/*/l.txt", mpatrolReal + "/*.trace"} {
		m, err := filepath.Glob(pattern)
		if err != nil || len(m) == 0 {
			t.Fatal(err, "no corpus")
		}
		files = append(files, m...)
	}
	resources, stacks := 0, 0
	for _, file := range files {
		if _, _, code := runRtrace("", "leaks", file); code != cli.OK && code != cli.Incomplete {
			continue // some synthetic ones are not traces
		}
		p := pageOf(t, file)
		for i, r := range p.Resources {
			x := leaksOf(t, file, "--by", "stack", "--resource", r.Type)
			if r.Total[0] != x.Blocks || r.Total[1] != x.Bytes {
				t.Errorf("%s: %s: %d blocks, %d bytes live; leaks says %d, %d", file, r.Type, r.Total[0], r.Total[1], x.Blocks, x.Bytes)
			}
			if d := cmp.Diff(leakStacks(x), p.leaked(i)); d != "" {
				t.Errorf("%s: %s (-leaks +report):\n%s", file, r.Type, d)
			}
			resources++
			stacks += len(x.Groups)
		}
	}
	if resources < 60 || stacks < 300 {
		t.Errorf("only %d resources, %d stacks were compared", resources, stacks)
	}
}

// TestReportLikeOriginal compares with the summaries of the real post-processor. Those are
// right only for the first two resources, and for a single one. There a block whose address
// was allocated again is still a leak.
func TestReportLikeOriginal(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(spRtraceCorpus, "out", "*", "l.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, "no corpus")
	}
	compared := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p := pageOf(t, filepath.Join(spRtraceCorpus, filepath.Base(filepath.Dir(file))+".rtrace"))
		for i, m := range summaryLines.FindAllStringSubmatch(string(text), -1) {
			at := slices.IndexFunc(p.Resources, func(r pageResource) bool { return r.Type == m[1] })
			if i > 1 || at < 0 {
				continue
			}
			compared++
			twice := leaksOf(t, filepath.Join(spRtraceCorpus, filepath.Base(filepath.Dir(file))+".rtrace"), "--resource", m[1]).Replaced
			if got := fmt.Sprint(p.Resources[at].Total[0]+twice.Blocks, " ", p.Resources[at].Total[1]+twice.Bytes); got != m[2]+" "+m[3] {
				t.Errorf("%s: %s: %s, the original says %s %s", file, m[1], got, m[2], m[3])
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d resources were compared", compared)
	}
}
