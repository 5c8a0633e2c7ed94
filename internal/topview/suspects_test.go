package topview

import (
	"encoding/json"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/report/verdict"
)

// noneGrows begins the verdict that there are no suspects.
const noneGrows = "no call site grows steadily"

// judged passes a second, and returns a snapshot with the engine's verdicts.
func (s *scene) judged() *Snapshot {
	x := s.tick()
	x.Judged, x.Suspects = s.Judges(aggregate.Memory), s.Suspects(aggregate.Memory)
	return x
}

// leaking returns a scene after some seconds: site 0 leaks 2 blocks a second, site 1 frees its
// blocks at once, site 2 has a block from the start.
func leaking(o Options, seconds int) (*scene, *Model) {
	s := newScene()
	m := New(s, o)
	for i := range seconds {
		s.alloc(0, 1, 2, 1024)
		s.free(s.alloc(1, 2, 10, 64))
		if i == 0 {
			s.alloc(2, 1, 1, 1<<20)
		}
		m.Update(s.judged(), false)
	}
	return s, m
}

func written(t *testing.T, m *Model, width int) string {
	t.Helper()
	var b strings.Builder
	if err := m.WriteTable(&b, 3, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func writtenObject(t *testing.T, m *Model, rows int) (x object, text string) {
	t.Helper()
	var b strings.Builder
	if err := m.WriteJSON(&b, rows); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b.String()), &x); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return x, b.String()
}

// Suspects come before the table, in every form, in the words of package verdict.
func TestSuspectsLead(t *testing.T) {
	s, m := leaking(Options{By: BySite, Order: OrderLive}, 40)
	of := s.Trend(0)
	words := verdict.Text(&of)
	if !strings.HasPrefix(words, "growing 2 blocks/s, ") {
		t.Fatalf("verdict %q", words)
	}
	line := "\n\nsuspect: cache_insert (cache.c:12) < handle_request < main: " + words + "\n\n"
	if got := written(t, m, 150); !strings.Contains(got, line) {
		t.Errorf("no %q in\n%s", line, got)
	}
	screen := shown(m, 80, 24)
	if line := "\nsuspect: cache_insert (cache.c:12) < handle_request < main\n  " + words + "\nby site, "; !strings.Contains(screen, line) {
		t.Errorf("no %q in\n%s", line, screen)
	}
	x, _ := writtenObject(t, m, 10)
	if len(x.Suspects) != 1 || x.Suspects[0].Verdict != words || !x.Suspects[0].Growing || x.Suspects[0].Growth.Blocks != of.Blocks.PerSecond ||
		x.Suspects[0].Function != "cache_insert" || x.Suspects[0].Line != 12 || x.OtherSuspects != 0 {
		t.Errorf("%+v", x.Suspects)
	}
	press(m, "down enter")
	if got := shown(m, 150, 24); !strings.Contains(got, "\nsuspect    "+words+"\n") {
		t.Errorf("no verdict in the detail:\n%s", got)
	}
}

// A verdict is on a stack since the start: other rows, and changes since a mark, have none.
func TestSuspectsOnlyBySite(t *testing.T) {
	_, m := leaking(Options{By: ByFunction, Order: OrderLive}, 40)
	if got := written(t, m, 150); strings.Contains(got, "suspect") || strings.Contains(got, noneGrows) {
		t.Errorf("by function:\n%s", got)
	}
	if _, text := writtenObject(t, m, 10); !strings.Contains(text, `"suspects":null`) {
		t.Error(text)
	}
	s, m := leaking(Options{By: BySite, Order: OrderLive}, 40)
	press(m, "m")
	s.alloc(0, 1, 2, 1024)
	m.Update(s.judged(), false)
	if got := shown(m, 150, 24); strings.Contains(got, "suspect") {
		t.Errorf("with a mark:\n%s", got)
	}
	press(m, "M")
	if got := shown(m, 150, 24); !strings.Contains(got, "suspect: ") {
		t.Errorf("after the mark was removed:\n%s", got)
	}
}

// A filter leaves out suspects, and does not claim that there are none.
func TestSuspectsFiltered(t *testing.T) {
	_, m := leaking(Options{By: BySite, Order: OrderLive, Filter: "parse"}, 40)
	if got := written(t, m, 150); strings.Contains(got, "suspect") || strings.Contains(got, noneGrows) {
		t.Errorf("\n%s", got)
	}
}

// The line that nothing grows needs enough time, and frees.
func TestNoSuspects(t *testing.T) {
	for _, seconds := range []int{5, 40} {
		s := newScene()
		m := New(s, Options{By: BySite, Order: OrderLive})
		for range seconds {
			s.free(s.alloc(1, 2, 10, 64))
			m.Update(s.judged(), false)
		}
		want := seconds == 40
		if got := written(t, m, 150); strings.Contains(got, "\n\n"+noneGrows+" (39 s observed)\n\n") != want {
			t.Errorf("after %d seconds:\n%s", seconds, got)
		}
		empty := `"suspects":[]`
		if _, text := writtenObject(t, m, 10); strings.Contains(text, empty) != want {
			t.Errorf("after %d seconds:\n%s", seconds, text)
		}
	}
	s := newScene()
	m := New(s, Options{By: BySite, Order: OrderLive})
	for range 40 {
		s.alloc(0, 1, 2, 1024)
		m.Update(s.judged(), false)
	}
	if got := written(t, m, 150); strings.Contains(got, "suspect") || strings.Contains(got, noneGrows) {
		t.Errorf("without frees:\n%s", got)
	}
}

// At most three suspects have lines, the fastest first, and each line has the number of all.
func TestManySuspects(t *testing.T) {
	s := newScene()
	m := New(s, Options{By: BySite, Order: OrderLive})
	for range 40 {
		for site := range 5 {
			s.alloc(site, 1, site+1, 100)
		}
		s.free(s.alloc(5, 1, 1, 1))
		m.Update(s.judged(), false)
	}
	for _, width := range []int{80, 150} {
		got := shown(m, width, 24)
		if n := strings.Count(got, "suspect"); n != suspectLines || !strings.Contains(got, "\nsuspect 1 of 5: "+naming+": growing 5 blocks/s") || !strings.Contains(got, "\nsuspect 3 of 5: libz") {
			t.Errorf("%d lines\n%s", n, got)
		}
		for line := range strings.Lines(got) {
			if n := len([]rune(line)) - 1; n > width {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
	if x, _ := writtenObject(t, m, 2); len(x.Suspects) != 2 || x.OtherSuspects != 3 {
		t.Errorf("%+v and %d others", x.Suspects, x.OtherSuspects)
	}
}
