package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInstallLinks compares the names under which `make install` links the program with the
// subcommands.
func TestInstallLinks(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	links := func(variable string) []string {
		m := regexp.MustCompile(`(?m)^` + variable + ` := (.*)$`).FindSubmatch(makefile)
		if m == nil {
			t.Fatalf("no %s in the Makefile", variable)
		}
		return strings.Fields(string(m[1]))
	}
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	slices.Sort(names)
	if d := cmp.Diff(names, links("RTRACE_LINKS")); d != "" {
		t.Errorf("RTRACE_LINKS (-subcommands +links):\n%s", d)
	}
	var others []string
	for name := range otherNames {
		others = append(others, name)
	}
	slices.Sort(others)
	if d := cmp.Diff(others, links("OTHER_LINKS")); d != "" {
		t.Errorf("OTHER_LINKS (-names +links):\n%s", d)
	}
	if d := cmp.Diff(originalNames, links("SP_RTRACE_LINKS")); d != "" {
		t.Errorf("SP_RTRACE_LINKS (-original names +links):\n%s", d)
	}
}
