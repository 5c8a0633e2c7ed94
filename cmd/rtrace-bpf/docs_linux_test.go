package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

var update = flag.Bool("update", false, "rewrite docs/cli/rtrace-bpf.md")

// The page of the command is generated from its flags. To refresh it, run go test
// ./cmd/rtrace-bpf -run Docs -update.
func TestDocs(t *testing.T) {
	var want bytes.Buffer
	if err := page().WriteMarkdown(&want); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/cli/rtrace-bpf.md"
	if *update {
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s is stale; -update refreshes it (-want +got)\n%s", path, diff)
	}
}

// The help contains each flag that README.md, docs/ and the examples of the help use.
func TestDocumentedCommands(t *testing.T) {
	page := page()
	all := testutil.DocumentedCommands(t, name)
	if len(all) < 20 {
		t.Errorf("only %d commands were found", len(all))
	}
	for _, e := range page.Examples {
		for _, words := range testutil.CommandLines(e.Command) {
			if words[0] == name {
				all = append(all, testutil.DocumentedCommand{Where: e.Command, Words: words})
			}
		}
	}
	for _, d := range all {
		if unlisted := testutil.UnlistedFlags(page, d.Words[1:]); len(unlisted) > 0 {
			t.Errorf("%s: the help does not have %q", d.Where, unlisted)
		}
	}
}

// The help fits on a screen and contains the flags that most people need.
func TestHelpIsAScreen(t *testing.T) {
	var text bytes.Buffer
	if err := page().WriteHelp(&text, cli.Brief); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text.Bytes(), []byte("\n")); n > cli.ScreenLines {
		t.Errorf("%d lines\n%s", n, text.String())
	}
	for line := range strings.Lines(text.String()) {
		if len(line) > cli.ScreenWidth+1 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, flag := range []string{"-p, --pid PID ", "--comm NAME ", "-o, --output PATH ", "--duration TIME ", "--format FORMAT ", "--max-rate N "} {
		if !strings.Contains(text.String(), flag) {
			t.Errorf("help does not have %q", flag)
		}
	}
}
