package cli

import "testing"

func TestCommandLine(t *testing.T) {
	got := CommandLine("rtrace", "report", "-o", "report.html", "a trace", "", "it's", "$HOME", "ä")
	if want := `rtrace report -o report.html 'a trace' '' 'it'\''s' '$HOME' ä`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
