package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// fleetPageData is the part of a fleet's page that these tests read.
type fleetPageData struct {
	Texts  []string
	Parts  [][4]int
	Sites  []int
	Shares struct {
		Site, Part, Traces, Growing []int
		Bytes                       []float64
		Uses                        [][10]uint64
	}
	Stacks struct {
		Site []int
		Uses [][10]uint64
	}
	Traces [][]any
}

func parseFleetPage(t *testing.T, page string) *fleetPageData {
	t.Helper()
	_, text, _ := strings.Cut(page, `<script type="application/json" id="data">`)
	text, _, ok := strings.Cut(text, "</script>")
	if !ok {
		t.Fatalf("no data in %.300s", page)
	}
	var p fleetPageData
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestReportOfFleet compares the page of traces with rtrace leaks and rtrace top over the same
// traces, for each host and service.
func TestReportOfFleet(t *testing.T) {
	dir := t.TempDir()
	makeFleet(t, dir)
	args := append([]string{"--folder-is", "host", "--no-resolve"}, folders(dir)[:2]...)
	page, errOut, code := runRtrace("", append([]string{"report"}, args...)...)
	if code != cli.OK && code != cli.Incomplete {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	p := parseFleetPage(t, page)
	for _, per := range []string{"host", "service"} {
		want, got, stacks := tallies{}, tallies{}, tallies{}
		rates := map[string]float64{}
		for _, g := range rtraceJSON[leakFleetObject](t, append([]string{"leaks", "--per", per}, args...)...).Groups {
			growing := uint64(0)
			if g.Growing != nil {
				growing = uint64(g.Growing.Traces)
				rates[g.Host+g.Service+frameText(&g.Frames[0])] -= g.Growing.BytesRate
			}
			want.add([]string{g.Host + g.Service, frameText(&g.Frames[0])}, 0, growing, g.Blocks, g.Bytes, 0, 0, 0, 0, 0, 0)
		}
		for _, g := range rtraceJSON[topFleetObject](t, append([]string{"top", "--by", "line", "--per", per}, args...)...).Groups {
			want.add([]string{g.Host + g.Service, frameText(&g.Frames[0])}, uint64(g.Traces), 0, 0, 0,
				g.AtPeak.Blocks, g.AtPeak.Bytes, g.Allocated.Blocks, g.Allocated.Bytes, g.Temporary.Blocks, g.Temporary.Bytes)
		}
		s := &p.Shares
		for i, site := range s.Site {
			part := p.Parts[s.Part[i]]
			of := map[string]string{"host": p.Texts[part[0]], "service": p.Texts[part[1]]}[per]
			key := []string{of, p.Texts[p.Sites[site]]}
			got.add(key, append([]uint64{uint64(s.Traces[i]), uint64(s.Growing[i])}, s.Uses[i][:8]...)...)
			rates[of+key[1]] += s.Bytes[i]
		}
		if d := cmp.Diff(want, got); d != "" || len(want) < 10 {
			t.Errorf("per %s (-leaks and top +page): %s", per, d)
		}
		growing := 0
		for key, rate := range rates {
			if math.Abs(rate) > 1e-6 {
				t.Errorf("%s grows %v bytes per second more in the page", key, rate)
			}
			growing++
		}
		if growing == 0 {
			t.Error("nothing grows")
		}
		// The stacks add up to the call sites.
		for i := range s.Site {
			stacks.add([]string{p.Texts[p.Sites[s.Site[i]]]}, s.Uses[i][:]...)
		}
		of := tallies{}
		for i, site := range p.Stacks.Site {
			of.add([]string{p.Texts[p.Sites[site]]}, p.Stacks.Uses[i][:]...)
		}
		if d := cmp.Diff(stacks, of); d != "" {
			t.Errorf("(-call sites +stacks): %s", d)
		}
	}
	if len(p.Parts) != 6 || len(p.Traces) != 12 {
		t.Errorf("%d parts, %d traces", len(p.Parts), len(p.Traces))
	}
}

// TestReportOfFleetText: the page names each trace that is missing or doubtful, and the status is
// that of rtrace leaks.
func TestReportOfFleetText(t *testing.T) {
	t.Chdir(smallFleet(t))
	page, errOut, code := runRtrace("", "report", "--folder-is", "host", "web1", "web2", "nonesuch")
	if code != cli.Incomplete {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	p := parseFleetPage(t, page)
	states := map[string]string{}
	for _, row := range p.Traces {
		text := func(i int) string { return p.Texts[int(row[i].(float64))] }
		states[text(0)] = text(3) + " " + text(8)
	}
	for file, want := range map[string]string{
		"web1/a": " ", "web2/b": " ", "web2/windows": "not included the trace was recorded with --budget, and rtrace report needs every call", "nonesuch": "not included opening nonesuch",
		"web2/c\x1b[m": "incomplete ", "web2/gap": "doubtful ",
	} {
		if got, ok := states[file]; !ok || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	for _, want := range []string{"<h1>4 traces<span", "2 hosts, 3 services", "Still live at the end: 5 blocks (42 bytes).", "not included: web2/windows: the trace", "careful: web2/gap"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
}

// TestReportOfFleetOrTwo: two files are compared, unless a flag requests their sum; a directory is a sum.
func TestReportOfFleetOrTwo(t *testing.T) {
	t.Chdir(smallFleet(t))
	for _, tt := range []struct {
		args, want string
		code       cli.ExitCode
	}{
		{"web1/a web2/b", "<title>Growth from", cli.OK},
		{"--sum web1/a web2/b", "<title>2 traces", cli.OK},
		{"--folder-is service web1/a web2/b", "<title>2 traces", cli.OK},
		{"--sum web1/a", "<title>1 trace<", cli.OK},
		{"web1", "<title>1 trace<", cli.OK},
		{"web1/a web2/b web2/gap", "<title>3 traces", cli.OK},
		{"web1/a web2/b -", "standard input cannot be one of several traces", cli.Usage},
		{"--sum", "--sum and --folder-is are for traces in files", cli.Usage},
		{"-o " + filepath.Join("web1", "a") + " web1 web2", "is both input and output", cli.Usage},
		{"none1 none2 none3", "opening none1: no such file or directory", cli.Failed},
	} {
		out, errOut, code := runRtrace("", append([]string{"report"}, strings.Fields(tt.args)...)...)
		if code != tt.code || !strings.Contains(out+errOut, tt.want) {
			t.Errorf("%s: exit code %d, %.300q, %q", tt.args, code, out, errOut)
		}
	}
}
