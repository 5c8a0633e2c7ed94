package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// TestMTRCLegacy checks that the legacy form contains no number that the unmodified mptrace
// misreads.
func TestMTRCLegacy(t *testing.T) {
	child := waiting(t, "threads_cxx", "5")
	r := start(t, child, "--format", "mtrc", "--mtrc-legacy", "--mtrc-words", "8")
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	_, events := scan(t, r.mtrcPath())
	for i, e := range events {
		for _, n := range []uint64{e.Index, e.Address, e.Size, e.Source.Thread, e.Source.Line} {
			if n >= wire.LegacyLimit {
				t.Fatalf("event %d, %+v, has %d", i, e, n)
			}
		}
	}
	got := effects(t, events)
	for thread, list := range logged(report, false) {
		if len(got[thread]) != len(list) {
			t.Errorf("thread %d: %d events, want %d", thread, len(got[thread]), len(list))
		}
		for i, x := range got[thread] {
			if want := list[i]; x.kind != want.kind || x.size != want.size || (x.made^want.made)&0xfffff != 0 {
				t.Errorf("thread %d, event %d: %+v, want %+v", thread, i, x, want)
			}
		}
	}
}

// TestMTRCWords checks words of 4 bytes, which 32-bit readers need.
func TestMTRCWords(t *testing.T) {
	child := waiting(t, "loop", "1")
	r := start(t, child, "--format", "mtrc", "--mtrc-words", "4", "--duration", "1ms")
	r.ends(cli.OK)
	header, _ := scan(t, r.mtrcPath())
	if header.Words != 4 {
		t.Errorf("words of %d bytes", header.Words)
	}
	child.Go()
	child.Go()
	child.Succeed()
}

// The events of a waiting program come through a pipe before the program ends.
func TestMTRCLive(t *testing.T) {
	tool := rtrace(t)
	testutil.NeedBPF(t)
	input, feed := pipe(t)
	answers, output := pipe(t)
	cmd := exec.Command("sqlite3", ":memory:")
	cmd.Stdin, cmd.Stdout = input, output
	child := testutil.Start(t, cmd)
	input.Close()
	output.Close()
	answer := bufio.NewReader(answers)
	ask := func(question string) {
		if _, err := io.WriteString(feed, question); err != nil {
			t.Fatal(err)
		}
		if line, err := answer.ReadString('\n'); err != nil || line != "up\n" {
			t.Fatalf("sqlite3 prints %q, %v", line, err)
		}
	}
	ask("select 'up';\n")

	events, trace := pipe(t)
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	record := command(t, "-p", fmt.Sprint(child.PID), "-q", "-o", "-", "--format", "mtrc", "--ready-file", ready)
	record.Stdout = trace
	r := startIn(t, record, dir, ready)
	trace.Close()
	show := exec.Command(tool, "mptrace", "-v", "-s", "-")
	rows, to := pipe(t)
	show.Stdin, show.Stdout = events, to
	shown := testutil.Start(t, show)
	events.Close()
	to.Close()

	ask("select 'up';\n")
	table := bufio.NewReader(rows)
	for row := ""; !strings.Contains(row, " alloc "); {
		var err error
		if row, err = table.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(table)
	if err != nil {
		t.Fatal(err)
	}
	child.Succeed()
	r.ends(cli.OK)
	shown.Succeed()
	if !strings.Contains(string(rest), fmt.Sprintf(" thread %d\n", child.PID)) || !strings.Contains(string(rest), "\nallocated: ") {
		t.Errorf("rtrace mptrace prints\n%.2000s", rest)
	}
}

// A trace to standard output has the names of functions.
func TestMTRCStream(t *testing.T) {
	child := waiting(t, "threads_cxx", "4")
	r := start(t, child, "--format", "mtrc", "-o", "-", "-q")
	child.Go()
	report := child.Report()
	r.ends(cli.OK)
	path := filepath.Join(t.TempDir(), "trace")
	if err := os.WriteFile(path, r.Output(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, events := scan(t, path)
	got := effects(t, events)
	for thread, list := range logged(report, false) {
		for i := range list {
			list[i].place = place{function: list[i].place.function}
		}
		equal(t, thread, list, got[thread], true)
	}
	if len(got) != len(report.TIDs) {
		t.Errorf("%d threads, want %d", len(got), len(report.TIDs))
	}
}

// TestHeapGrowth checks that traces contain growth of the heap only with --heap-growth.
func TestHeapGrowth(t *testing.T) {
	for format, suffix := range map[string]string{"jsonl": ".jsonl", "sprtrace": ""} {
		for _, growth := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %v", format, growth), func(t *testing.T) {
				child := waiting(t, "alloc", "1", "100")
				r := start(t, child, "--format", format, fmt.Sprintf("--heap-growth=%v", growth))
				child.Go()
				child.Succeed()
				r.ends(cli.OK)
				n := 0
				for _, rec := range load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0%s", child.PID, suffix))) {
					if rec.Kind == trace.KindHeapGrow {
						n++
					}
				}
				if (n > 0) != growth {
					t.Errorf("%d records of growth", n)
				}
			})
		}
	}
}

// The names come from the files that the process mapped, even if these are gone from the
// machine when it has ended.
func TestMTRCNamesOfMountNamespace(t *testing.T) {
	program := testutil.Build(t, "alloc")
	dir := t.TempDir()
	const script = `mount -t tmpfs none "$1" && cp "$0" "$1/alloc" && exec "$1/alloc" 1 100`
	child := testutil.Start(t, exec.Command("unshare", "--mount", "sh", "-c", script, program, dir))
	child.Ready()
	r := start(t, child, "--format", "mtrc")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	_, events := scan(t, r.mtrcPath())
	for i, e := range events {
		if e.Kind == wire.Alloc && (!e.Source.Function.Known || e.Source.Line == 0) {
			t.Fatalf("event %d has no function or line: %+v", i, e)
		}
	}
}
