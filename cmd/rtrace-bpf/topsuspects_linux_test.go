package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// suspectLine is what tests need of a line of JSON about suspects.
type suspectLine struct {
	Final    bool
	Suspects []struct {
		Function, Verdict string
		Growing           bool
		Stack             []string
	}
	Rows []struct {
		Function    string
		Live, Freed topAmount
	}
}

// row returns the amounts of a function's rows.
func (x *suspectLine) row(function string) (live, freed topAmount) {
	for _, r := range x.Rows {
		if r.Function == function {
			live.Blocks += r.Live.Blocks
			live.Bytes += r.Live.Bytes
			freed.Blocks += r.Freed.Blocks
			freed.Bytes += r.Freed.Bytes
		}
	}
	return live, freed
}

// mostTables is how many tables a test waits for a verdict at most.
const mostTables = 600

// The leak is named, and the cache next to it is not, as soon as it was replaced often enough.
func TestTopSuspects(t *testing.T) {
	child := waiting(t, "suspect")
	cmd := command(t, "top", "-p", fmt.Sprint(child.PID), "--json", "--interval", "100ms")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tables := bufio.NewReader(out)
	next := func() (x suspectLine) {
		line, err := tables.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &x)
		}
		if err != nil {
			t.Fatalf("%v after %q\n%s", err, line, stderr.Bytes())
		}
		return x
	}
	if first := next(); first.Suspects != nil {
		t.Errorf("suspects before the first call: %+v", first.Suspects)
	}
	child.Go()
	named := false
	for range mostTables {
		x := next()
		_, freed := x.row("cache_put")
		const turnovers = 20 * 64
		if freed.Blocks < turnovers || len(x.Suspects) == 0 {
			continue
		}
		named = true
		if s := x.Suspects[0]; len(x.Suspects) != 1 || s.Function != "leak_one" || !s.Growing ||
			!strings.HasPrefix(s.Verdict, "growing ") || !strings.Contains(s.Verdict, "; none of ") {
			t.Errorf("%+v", x.Suspects)
		}
		break
	}
	if !named {
		t.Errorf("no suspect in %d tables", mostTables)
	}
	child.Go()
	child.Succeed()
	x := next()
	for !x.Final {
		x = next()
	}
	var leaked uint64
	if _, err := fmt.Sscanf(string(child.Output()), "leaked %d", &leaked); err != nil {
		t.Fatal(err)
	}
	if live, freed := x.row("leak_one"); live.Blocks != leaked || freed.Blocks != 0 {
		t.Errorf("%d blocks of the leak are live and %d were freed, want %d and 0", live.Blocks, freed.Blocks, leaked)
	}
	if rest, err := io.ReadAll(tables); err != nil || len(rest) > 0 {
		t.Errorf("after the last line: %v %q", err, rest)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr.Bytes())
	}
}
