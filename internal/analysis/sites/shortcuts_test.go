package sites

import (
	"testing"

	"rtrace-bpf/trace"
)

// TestShortcuts: a stack with an ID has the number that it has without one, however many there
// are, and an ID does not hide texts or a caller.
func TestShortcuts(t *testing.T) {
	const stacks = 100_000 // more than there is room for
	var table Table
	var names Names
	for round := range 2 {
		for i := range uint64(stacks) {
			s := trace.Stack{Frames: []uint64{i, 1}, End: trace.StackComplete, ID: i<<20 + 1}
			if got := table.Add(&s, &trace.Caller{}, &names); got != uint32(i+1) {
				t.Fatalf("round %d: stack %d has number %d", round, i, got)
			}
			s.ID = 0
			if got := table.Add(&s, &trace.Caller{}, &names); got != uint32(i+1) {
				t.Fatalf("round %d: stack %d has number %d without an ID", round, i, got)
			}
		}
	}
	if room := len(table.known.sets); room > maxSets {
		t.Errorf("%d sets", room)
	}
	named := trace.Stack{Frames: []uint64{0, 1}, Names: []string{"f", "g"}, End: trace.StackComplete, ID: 1}
	if got := table.Add(&named, &trace.Caller{}, &names); got != stacks+1 {
		t.Errorf("a stack with texts has number %d", got)
	}
	named.Names = nil
	if got := table.Add(&named, &trace.Caller{Line: 1}, &names); got != stacks+2 {
		t.Errorf("a stack with a caller has number %d", got)
	}
}

// TestShortcut: stacks that Add has seen are found by their ID.
func TestShortcut(t *testing.T) {
	var table Table
	s := trace.Stack{Frames: []uint64{1, 2}, ID: 77}
	if number := table.Add(&s, &trace.Caller{}, &Names{}); table.known.find(77) != number || number == 0 {
		t.Errorf("number %d, by its ID %d", number, table.known.find(77))
	}
}
