package userland

import (
	"slices"
	"testing"
)

func TestLacks(t *testing.T) {
	lacks := Lacks([]string{"shell", "gdb"})
	for program, want := range map[string]bool{"sh": false, "gdb": false, "node": true, "java": true, "python3": true} {
		if slices.Contains(lacks, program) != want {
			t.Errorf("%s: %v", program, lacks)
		}
	}
	if lacks := Lacks(Names()); lacks != nil {
		t.Errorf("with all parts: %v", lacks)
	}
}
