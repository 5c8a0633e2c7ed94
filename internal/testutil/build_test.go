package testutil

import (
	"strings"
	"testing"
)

func TestBuild(t *testing.T) {
	one, two := Build(t, "leak"), Build(t, "leak")
	other := Build(t, "leak", "-O1")
	if one != two {
		t.Errorf("built twice: %s and %s", one, two)
	}
	if one == other {
		t.Errorf("one program for different flags: %s", one)
	}
	if got := fatal(func(r *recorder) { Build(r, "leak", "-Dmain=(") }); !strings.Contains(got, "build leak") || !strings.Contains(got, "error") {
		t.Errorf("message %q, want the compiler's message", got)
	}
	if got := fatal(func(r *recorder) { Build(r, "no-such-program") }); !strings.Contains(got, "no program no-such-program") {
		t.Errorf("message %q for a program that does not exist", got)
	}
}
