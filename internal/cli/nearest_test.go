package cli

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"duration", "depth", "dry-run", "format", "follow-forks", "q", "text", "output"}
	for given, want := range map[string]string{
		"duratoin": "duration", "Duration": "duration", "durations": "duration", "dur": "duration", "dept": "depth",
		"dryrun": "dry-run", "dry_run": "dry-run", "fomat": "format", "fromat": "format", "folow-fork": "follow-forks",
		"": "", "d": "", "z": "", "nonsense": "", "tex": "text", "txet": "text", "outptu": "output", "leaks": "",
	} {
		if got := Nearest(given, words); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	if d := distance("", "abc"); d != 3 {
		t.Errorf("distance %d", d)
	}
}
