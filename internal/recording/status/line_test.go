package status

import (
	"bytes"
	"testing"
)

// Numbers have a unit that keeps them short.
func TestNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(1_200_000), "1.2M"},
		{Count(3e12), "3000.0G"},
		{Bytes(1023), "1023 B"},
		{Bytes(3 << 19), "1.5 MiB"},
		{Times(1), "once"},
		{Times(2), "2 times"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

// A message replaces the line of progress. Quiet keeps notes away, and no details are
// printed unless they are asked for.
func TestMessages(t *testing.T) {
	var out bytes.Buffer
	l := New(Options{Out: &out, Program: "p", Progress: true})
	l.Say("working")
	l.Note("a %s", "note\x1b[2J")
	l.Detail("a detail")
	l.Quiet, l.Verbose = true, 1
	l.Note("another note")
	l.Detail("another detail")
	l.Print("a message")
	if want := "\r\x1b[Kworking\r\x1b[Kp: a note\\x1b[2J\np: another detail\np: a message\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// Without a terminal there is no progress.
func TestNoProgress(t *testing.T) {
	var out bytes.Buffer
	l := New(Options{Out: &out})
	l.Show(1, Figures{Calls: 1})
	l.Say("working")
	l.Clear()
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
}
