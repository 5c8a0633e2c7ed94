package main

import (
	"testing"

	"rtrace-bpf/internal/testutil"
)

// If the kernel would misread the first instruction of a function, the function is left out
// with a message, and works as before.
func TestMisreadInstruction(t *testing.T) {
	program := testutil.Build(t, "misread")
	l := launchCommand(t, []string{"--resource", "x:free=lanes(id=arg1)"}, program)
	l.ends(0)
	l.says("its first instruction cannot have a probe")
	if got := string(l.Output()); got != "right\n" {
		t.Errorf("the function's result is %s", got)
	}
}
