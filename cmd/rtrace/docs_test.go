package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

// The pages in docs/cli are made from the flags: go test ./cmd/rtrace -run
// Docs -update refreshes them.
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
		if pages[name] == nil && name != "rtrace-bpf" { // that has its own test
			t.Errorf("%s is of a command that does not exist", path)
		}
	}
}

// Each page has what a page must have.
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
