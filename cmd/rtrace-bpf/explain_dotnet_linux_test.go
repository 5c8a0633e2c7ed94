package main

import (
	"fmt"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/explain"
)

// A real .NET program: its heap and its compiled code have rows of their own, and little is left
// unnamed.
func TestExplainDotnet(t *testing.T) {
	p := dotnetProgram(t)
	worked, closed := make(chan struct{}), false
	p.watch(func(answers int) {
		if answers >= work && !closed {
			closed = true
			close(worked)
		}
	})
	<-worked
	p.watch(nil)
	p.close() // it has nothing to do any more, so that its memory changes little
	d := explained(t, cli.OK, "-p", fmt.Sprint(p.pid))[0]
	parts := map[explain.Kind]uint64{}
	for i := range d.Rows {
		r := &d.Rows[i]
		parts[r.Kind] += r.Resident
		if r.Kind == explain.Managed && !strings.HasPrefix(r.What, ".NET heap") {
			t.Errorf("a managed heap %q", r.What)
		}
	}
	if parts[explain.Managed] < 1<<20 || parts[explain.Runtime] < 1<<18 {
		t.Errorf("the heap has %d bytes and compiled code %d", parts[explain.Managed], parts[explain.Runtime])
	}
	if unnamed := parts[explain.Other] + parts[explain.Anonymous]; unnamed*20 > d.Resident {
		t.Errorf("%d of %d bytes have no name", unnamed, d.Resident)
	}
}
