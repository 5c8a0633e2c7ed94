package digestview

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/testutil/browser"
)

func openFleet(t *testing.T, f *Fleet, width int) *browser.Page {
	t.Helper()
	var out bytes.Buffer
	if err := WriteFleet(&out, f); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fleet.html")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p := browser.Open(t, path, width, 900)
	t.Cleanup(func() {
		if faults := p.Faults(); len(faults) > 0 {
			t.Errorf("errors of the page: %v", faults)
		}
		if got := p.Fetched(); !slices.Equal(got, []string{"file://" + path}) {
			t.Errorf("the page fetched %v", got)
		}
		var images int
		if p.Eval("document.querySelectorAll('img, b').length", &images); images > 0 {
			t.Errorf("a name became markup: %d elements", images)
		}
	})
	return p
}

// fleetOf returns two call sites on two hosts: one that grows on the first, and one that does not.
func fleetOf() *Fleet {
	use := func(blocks, bytes uint64) digest.Use {
		return digest.Use{Live: live.Amount{Blocks: blocks, Bytes: bytes}, Allocated: live.Amount{Blocks: 2 * blocks, Bytes: 2 * bytes}}
	}
	stack := func(part, site int, u digest.Use, names ...string) FleetStack {
		s := FleetStack{Part: part, Site: site, Use: u}
		for _, name := range names {
			s.Frames = append(s.Frames, sites.Frame{Place: sites.Place{Function: name, Module: "/usr/bin/" + hostile}})
		}
		return s
	}
	return &Fleet{
		Title: "4 traces " + hostile, Of: "of " + hostile, Verdict: "Verdict " + hostile, Notes: []string{"Note " + hostile}, Warnings: []string{"Warning " + hostile}, Resource: "memory",
		Parts: []FleetPart{{"web1", "api", 2, 1}, {hostile, "api", 1, 0}},
		Sites: []FleetSite{
			{"leaky " + hostile, []FleetShare{{Part: 0, Traces: 2, Growing: 1, Blocks: 3, Bytes: 2048, Use: use(10, 3000)}, {Part: 1, Traces: 1, Use: use(1, 1000)}}},
			{"cache at c.c:7", []FleetShare{{Part: 0, Traces: 1, Use: use(4, 4000)}}},
		},
		Stacks: []FleetStack{
			stack(0, 0, use(10, 3000), "leaky", "main"), stack(1, 0, use(1, 1000), "leaky", "main"), stack(0, 1, use(4, 4000), "cache", hostile, "main"),
		},
		Traces: []FleetTrace{
			{File: "a/1", Host: "web1", Service: "api", Part: 0, Calls: 9, Growing: 1, Use: use(10, 3000)},
			{File: "a/2", Host: "web1", Service: "api", Part: 0, Calls: 5, Use: use(4, 4000)},
			{File: "b/" + hostile, Host: hostile, Service: "api", Part: 1, Calls: 3, Use: use(1, 1000), State: "doubtful", Notes: []string{"lost " + hostile, "cut"}},
			{File: "b/none", Part: -1, State: "not included", Notes: []string{"it is no trace"}},
		},
	}
}

// choose selects an option of a list.
func choose(p *browser.Page, id, value string) {
	p.Eval(fmt.Sprintf("(e => { e.value = %q; e.dispatchEvent(new Event('change')); })(document.getElementById('%s'))", value, id), nil)
}

// The filters apply to the sums, the tables and the flame graph.
func TestFleet(t *testing.T) {
	p := openFleet(t, fleetOf(), 1200)
	check := func(what, traces, growing, stillLive string, sites [][]string, box string, width float64, files int) {
		t.Helper()
		for id, want := range map[string]string{"traces": traces, "growing": growing, "live": stillLive} {
			if got := p.Text("#card-" + id + " .big"); got != want {
				t.Errorf("%s: %s: %q, want %q", what, id, got, want)
			}
		}
		if got := rows(p, "#site-table"); fmt.Sprint(got) != fmt.Sprint(sites) {
			t.Errorf("%s: call sites %q, want %q", what, got, sites)
		}
		if b, ok := boxes(p)[box]; !ok || !near(b.Width, width) {
			t.Errorf("%s: %s: %+v (%v), want %v", what, box, b, ok, width)
		}
		if got := rows(p, "#trace-table"); len(got) != files {
			t.Errorf("%s: %d traces, want %d: %q", what, len(got), files, got)
		}
	}
	leaky := "leaky " + hostile
	check("all", "3", "1", "7.81 KiB", [][]string{
		{"2 KiB/s", "1", "3.91 KiB", "50 %", "3", "2", "7.81 KiB", "0 B", leaky}, {"", "", "3.91 KiB", "50 %", "1", "1", "7.81 KiB", "0 B", "cache at c.c:7"},
	}, "3 leaky", 0.5, 4)
	choose(p, "host", "web1")
	check("web1", "2", "1", "6.84 KiB", [][]string{
		{"2 KiB/s", "1", "2.93 KiB", "42.9 %", "2", "1", "5.86 KiB", "0 B", leaky}, {"", "", "3.91 KiB", "57.1 %", "1", "1", "7.81 KiB", "0 B", "cache at c.c:7"},
	}, "3 leaky", 3.0/7, 3)
	p.Eval("document.getElementById('growing').click()", nil)
	check("growing", "2", "1", "2.93 KiB", [][]string{{"2 KiB/s", "1", "2.93 KiB", "100 %", "2", "1", "5.86 KiB", "0 B", leaky}}, "3 leaky", 1, 3)
	if got, want := p.Text("#filtered"), "Filtered: host web1, only call sites that grow."; got != want {
		t.Errorf("filter %q, want %q", got, want)
	}
	p.Click("#clear")
	choose(p, "host", hostile)
	check("hostile", "1", "0", "1000 B", [][]string{{"1000 B", "100 %", "1", "1", "1.95 KiB", "0 B", leaky}}, "3 leaky", 1, 2)
	p.Click("#clear")
	press(p, "units", "Blocks")
	check("blocks", "3", "1", "15 blocks", [][]string{
		{"3/s", "1", "11", "73.3 %", "3", "2", "22", "0", leaky}, {"", "", "4", "26.7 %", "1", "1", "8", "0", "cache at c.c:7"},
	}, "3 leaky", 11.0/15, 4)
}

// An open row shows the hosts of a call site and its stacks, and what is wrong with a trace.
func TestFleetDetails(t *testing.T) {
	p := openFleet(t, fleetOf(), 1200)
	p.Click("#site-table .toggle")
	if got := p.Text("#site-table .shares tbody"); got != "web1api212 KiB/s2.93 KiB5.86 KiB"+hostile+"api101000 B1.95 KiB" {
		t.Errorf("shares %q", got)
	}
	if got := p.Text("#site-table .frames"); got != "leaky from /usr/bin/"+hostile+"main from /usr/bin/"+hostile {
		t.Errorf("stack %q", got)
	}
	p.Click("#trace-table .toggle")
	if got := rows(p, "#trace-table"); got[0][5] != hostile || got[0][6] != "doubtful" || got[1][0] != "lost "+hostile+"cut" || got[2][6] != "not included" || got[2][0] != "" || got[3][6] != "complete" {
		t.Errorf("traces %q", got)
	}
}

func TestFleetNarrowAndDark(t *testing.T) {
	p := openFleet(t, fleetOf(), 360)
	p.Click("#site-table .toggle")
	isReadable(t, p)
}

// However large the fleet is, the page is small, and its sums are whole.
func TestFleetBounded(t *testing.T) {
	f := &Fleet{Resource: "memory"}
	const parts, perPart = 900, 60
	var want uses
	for part := range parts {
		f.Parts = append(f.Parts, FleetPart{fmt.Sprint("host", part), "service", 3, 1})
		f.Traces = append(f.Traces, slices.Repeat([]FleetTrace{{File: strings.Repeat("f", 500) + fmt.Sprint(part), Part: part, Notes: []string{strings.Repeat("n", 500)}}}, 3)...)
		for i := range perPart {
			u := digest.Use{Live: live.Amount{Blocks: 1, Bytes: uint64(part*perPart + i)}}
			f.Sites = append(f.Sites, FleetSite{Name: fmt.Sprint("site", part, "-", i), In: []FleetShare{{Part: part, Traces: 1, Growing: 1, Use: u}}})
			f.Stacks = append(f.Stacks, FleetStack{Frames: []sites.Frame{{Place: sites.Place{Function: fmt.Sprint("f", part, "-", i)}}, {Place: sites.Place{Function: "main"}}}, Part: part, Site: len(f.Sites) - 1, Use: u})
			all := usesOfUse(&u)
			want.add(&all)
		}
	}
	var out bytes.Buffer
	if err := WriteFleet(&out, f); err != nil {
		t.Fatal(err)
	}
	d := buildFleet(f)
	var ofSites, ofStacks uses
	for i := range d.Shares.Uses {
		ofSites.add(&d.Shares.Uses[i])
	}
	for i := range d.Stacks.Uses {
		ofStacks.add(&d.Stacks.Uses[i])
	}
	traces := 0
	for _, p := range d.Parts {
		traces += p[2]
	}
	if out.Len() > 5_000_000 || ofSites != want || ofStacks != want || traces != 3*parts || len(d.Parts) != maxParts+1 || d.LeftRows != 3*parts-maxTraces || d.LeftSites+len(d.Sites) != parts*perPart {
		t.Errorf("%d bytes, call sites %v, stacks %v, want %v; %d traces, %d parts, %d and %d left out", out.Len(), ofSites, ofStacks, want, traces, len(d.Parts), d.LeftRows, d.LeftSites)
	}
}
