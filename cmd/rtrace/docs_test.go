package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// The pages in docs/cli are generated from the flags: go test ./cmd/rtrace -run Docs -update
// refreshes them.
func TestDocs(t *testing.T) {
	pages := map[string]*cli.Page{"rtrace": overview()}
	for _, c := range commands() {
		pages["rtrace-"+c.name] = c.helpPage()
	}
	const dir = "../../docs/cli"
	for name, page := range pages {
		var want bytes.Buffer
		if err := page.WriteMarkdown(&want); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name+".md")
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v; go test ./cmd/rtrace -run Docs -update makes it", err)
			continue
		}
		if diff := cmp.Diff(want.String(), string(got)); diff != "" {
			t.Errorf("%s is stale; go test ./cmd/rtrace -run Docs -update refreshes it (-want +got)\n%s", path, diff)
		}
	}
	all, err := filepath.Glob(filepath.Join(dir, "rtrace*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		if pages[name] == nil && !strings.HasPrefix(name, "rtrace-bpf") { // these have a test of their own
			t.Errorf("%s is of a command that does not exist", path)
		}
	}
}

// Each page has all required parts.
func TestHelpPages(t *testing.T) {
	for _, c := range commands() {
		page := c.helpPage()
		if len(page.Synopsis) == 0 || page.Summary == "" || page.About == "" || len(page.Examples) < 2 {
			t.Errorf("%s: the page lacks something: %+v", c.name, page)
		}
		for _, e := range page.Examples {
			if !strings.Contains(e.Command, "rtrace "+c.name) {
				t.Errorf("%s: example %q", c.name, e.Command)
			}
		}
		var text bytes.Buffer
		if err := page.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.String()) {
			if strings.ContainsAny(line, "\t`") {
				t.Errorf("%s: help line %q", c.name, line)
			}
		}
		help := "-h, --help"
		if c.name == "allocmap" {
			help = "    --help" // -h is another flag of the original
		}
		if !strings.Contains(text.String(), help) || !strings.Contains(text.String(), "Exit status:") {
			t.Errorf("%s: help\n%s", c.name, text.String())
		}
	}
}

// TestExamples: each page has at least two examples, with flags that the command has.
// Commands after a pipe and those of other programs are not checked.
func TestExamples(t *testing.T) {
	all := map[string]command{}
	for _, c := range commands() {
		all[c.name] = c
	}
	for _, c := range commands() {
		if n := len(c.page.Examples); n < 2 {
			t.Errorf("%s has %d examples", c.name, n)
		}
		own := 0
		for _, e := range c.page.Examples {
			for part := range strings.SplitSeq(e.Command, "|") {
				words := strings.Fields(strings.ReplaceAll(part, "'", ""))
				if len(words) < 2 || words[0] != "rtrace" {
					continue
				}
				named, ok := all[words[1]]
				if !ok {
					t.Errorf("%s: there is no rtrace %s", e.Command, words[1])
					continue
				}
				if named.name == c.name {
					own++
				}
				var f flags
				named.setup(&f)
				f.finish()
				args := words[2:]
				if i := slices.IndexFunc(args, func(a string) bool { return strings.ContainsAny(a, "<>&") }); i >= 0 {
					args = args[:i]
				}
				if _, err := f.Parse("rtrace "+named.name, args); err != nil {
					t.Errorf("%s: %v", e.Command, err)
				}
			}
		}
		if own == 0 {
			t.Errorf("no example of %s is of itself", c.name)
		}
	}
}

// The help contains each subcommand and flag that README.md and docs/ use.
func TestDocumentedCommands(t *testing.T) {
	all := testutil.DocumentedCommands(t, "rtrace")
	if len(all) < 20 {
		t.Errorf("only %d commands were found", len(all))
	}
	for _, d := range all {
		words := d.Words[1:]
		if len(words) == 0 || strings.HasPrefix(words[0], "-") || words[0] != strings.ToLower(words[0]) { // as rtrace NAME
			continue
		}
		c, ok := find(words[0])
		if !ok {
			t.Errorf("%s: there is no rtrace %s", d.Where, words[0])
			continue
		}
		if unlisted := testutil.UnlistedFlags(c.helpPage(), words[1:]); len(unlisted) > 0 {
			t.Errorf("%s: rtrace help %s does not have %q", d.Where, c.name, unlisted)
		}
	}
}

// The help of each command fits on a screen.
func TestHelpIsAScreen(t *testing.T) {
	pages := []*cli.Page{overview()}
	for _, c := range commands() {
		pages = append(pages, c.helpPage())
	}
	for _, page := range pages {
		var text bytes.Buffer
		if err := page.WriteHelp(&text, cli.Brief); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text.Bytes(), []byte("\n")); n > cli.ScreenLines {
			t.Errorf("%s: %d lines\n%s", page.Name, n, text.String())
		}
	}
}
