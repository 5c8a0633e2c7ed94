package governor

import (
	"slices"
	"testing"
	"time"
)

// While a reader is slow, a window closes, and no other one opens.
func TestWindowsWithASlowReader(t *testing.T) {
	g, f := governed(0)
	used := time.Duration(0)
	meter := func() (time.Duration, error) {
		used += time.Millisecond
		return used, nil
	}
	none := func() (time.Duration, error) { return 0, nil }
	if err := g.Within(NewWindows(0.5, Meters{Process: meter, Moves: none, Hits: func() (time.Duration, error) { return used * 9 / 10, nil }})); err != nil {
		t.Fatal(err)
	}
	for g.mover.state != waiting {
		if err := g.Await(); err != nil {
			t.Fatal(err)
		}
		g.mover.running.Wait()
	}
	for !g.due(0) { // another window may open
	}
	if err := g.Await(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"enable", "suspend", "detach"}; !slices.Equal(f.done, want) {
		t.Errorf("%v, want %v", f.done, want)
	}
	if turns := g.TakeTurns(); len(turns) < 2 || turns[len(turns)-1].Window.Weight != 0 {
		t.Errorf("turns: %+v", turns)
	}
}

// A governor with windows opens the first one at once, detaches the probes when it closes, and
// attaches them for the next one. What lies between is no gap.
func TestWindows(t *testing.T) {
	g, f := governed(0)
	used := time.Duration(0)
	tick := func() (time.Duration, error) {
		used += time.Millisecond
		return used, nil
	}
	none := func() (time.Duration, error) { return 0, nil }
	if err := g.Within(NewWindows(0.5, Meters{Process: tick, Moves: none, Hits: func() (time.Duration, error) { return used * 9 / 10, nil }})); err != nil {
		t.Fatal(err)
	}
	var turns []Turn
	want := []string{"enable", "suspend", "detach", "reattach", "enable", "suspend", "detach"}
	for len(f.done) < len(want) {
		if gap, ok, err := g.Govern(0); ok || err != nil {
			t.Fatalf("gap %+v, %v", gap, err)
		}
		g.mover.running.Wait()
		turns = append(turns, g.TakeTurns()...)
	}
	if !slices.Equal(f.done, want) {
		t.Errorf("%v, want %v", f.done, want)
	}
	open := 0
	for i, x := range turns {
		if i > 0 && (x.Time < turns[i-1].Time || x.Window.Used < turns[i-1].Window.Used) {
			t.Errorf("%+v follows %+v", x, turns[i-1])
		}
		if x.Window.Stretch > 0 {
			open++
		}
	}
	if open != 2 || turns[0].Window.Weight != 1 || turns[len(turns)-1].Window.Weight != 0 {
		t.Errorf("turns: %+v", turns)
	}
	if _, ok := g.Incomplete(turns[len(turns)-1].Time + 1); ok {
		t.Error("the time after a window is a gap")
	}
	if c := g.windows.Cost(); c.Used <= 0 || c.Added <= 0 || c.Budget != 500_000 {
		t.Errorf("cost %+v", c)
	}
}
