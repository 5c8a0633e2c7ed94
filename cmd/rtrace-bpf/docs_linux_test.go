package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

var update = flag.Bool("update", false, "rewrite the pages of docs/cli")

// pages returns the pages of the program and of its verbs.
func pages() []*cli.Page {
	all := []*cli.Page{overview()}
	for _, v := range verbs() {
		all = append(all, v.page())
	}
	return all
}

// The pages of the program and its verbs are generated from their flags. To refresh them, run
// go test ./cmd/rtrace-bpf -run Docs -update.
func TestDocs(t *testing.T) {
	all, err := filepath.Glob("../../docs/cli/rtrace-bpf*.md")
	if err != nil {
		t.Fatal(err)
	}
	others := make(map[string]bool)
	for _, path := range all {
		others[path] = true
	}
	for _, page := range pages() {
		var want bytes.Buffer
		if err := page.WriteMarkdown(&want); err != nil {
			t.Fatal(err)
		}
		path := "../../docs/cli/" + strings.ReplaceAll(page.Name, " ", "-") + ".md"
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
		delete(others, path)
	}
	for path := range others {
		t.Errorf("%s is of a verb that does not exist", path)
	}
}

// helpOf returns the page that lists the flags of a command line. words are its arguments.
func helpOf(words []string) *cli.Page {
	if len(words) > 0 {
		if v, ok := findVerb(words[0]); ok {
			return v.page()
		}
	}
	return recordPage()
}

// The help contains each flag that README.md, docs/ and the examples of the help use.
func TestDocumentedCommands(t *testing.T) {
	all := testutil.DocumentedCommands(t, name)
	if len(all) < 20 {
		t.Errorf("only %d commands were found", len(all))
	}
	for _, page := range pages() {
		examples := page.Examples
		for _, g := range page.Flags {
			examples = append(examples, g.Examples...)
		}
		if len(examples) < 2 || page.About == "" {
			t.Errorf("%s: %d examples, and the text %q", page.Name, len(examples), page.About)
		}
		for _, e := range examples {
			for _, words := range testutil.CommandLines(e.Command) {
				if words[0] == name {
					all = append(all, testutil.DocumentedCommand{Where: e.Command, Words: words})
				}
			}
		}
	}
	for _, d := range all {
		if unlisted := testutil.UnlistedFlags(helpOf(d.Words[1:]), d.Words[1:]); len(unlisted) > 0 {
			t.Errorf("%s: the help does not have %q", d.Where, unlisted)
		}
	}
}

// The help of the program and of each verb fits on a screen, and contains what most people
// need.
func TestHelpIsAScreen(t *testing.T) {
	needed := map[string][]string{
		"rtrace-bpf":        append(verbNames(), "-p, --pid PID ", "--comm NAME ", "help TOPIC: "),
		"rtrace-bpf record": {"-p, --pid PID ", "--comm NAME ", "-o, --output PATH ", "--duration TIME ", "--format FORMAT ", "--max-rate N "},
		"rtrace-bpf plan":   {"-p, --pid PID ", "--comm NAME ", "--enable LIST "},
	}
	for _, page := range pages() {
		var out bytes.Buffer
		if err := page.WriteHelp(&out, cli.Brief); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if n := strings.Count(text, "\n"); n > cli.ScreenLines {
			t.Errorf("%d lines\n%s", n, text)
		}
		for line := range strings.Lines(text) {
			if len(line) > cli.ScreenWidth+1 {
				t.Errorf("%d columns: %s", len(line)-1, line)
			}
		}
		for _, need := range needed[page.Name] {
			if !strings.Contains(text, need) {
				t.Errorf("help does not have %q\n%s", need, text)
			}
		}
	}
}
