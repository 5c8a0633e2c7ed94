package testutil

import (
	_ "embed"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// originalNames lists the names of options, variables, modules and packets of the original
// programs, with their source.
//
//go:embed testdata/originals.txt
var originalNames string

// Original is a row of docs/migrating.md.
type Original struct {
	Heading string
	Names   []string
	Typed   string // what became of the name: taken, refused …
	Ours    string
}

// codes returns the parts of a text that are between back quotes.
func codes(text string) (all []string) {
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// Originals returns the rows of the document at path. It fails the test for each known name
// without a row and for each row of an unknown name.
func Originals(t *testing.T, path string) []Original {
	t.Helper()
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows []Original
	heading := ""
	for line := range strings.Lines(string(document)) {
		if h, ok := strings.CutPrefix(line, "## "); ok {
			heading = strings.TrimSpace(h)
		}
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.SplitN(strings.Trim(strings.TrimSpace(line), "|"), "|", 3)
		if len(cells) != 3 || strings.TrimSpace(cells[1]) == "" || strings.TrimSpace(cells[2]) == "" {
			t.Errorf("%s: a row without three cells: %s", path, line)
			continue
		}
		rows = append(rows, Original{heading, codes(cells[0]), strings.TrimSpace(cells[1]), cells[2]})
	}
	known := make(map[string]bool)
	for line := range strings.Lines(originalNames) {
		heading, names, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		for name := range strings.FieldsSeq(names) {
			known[heading+": "+name] = true
			if !slices.ContainsFunc(rows, func(r Original) bool { return r.Heading == heading && slices.Contains(r.Names, name) }) {
				t.Errorf("%s has no row for %s under %q", path, name, heading)
			}
		}
	}
	if len(known) == 0 {
		t.Fatal("no names")
	}
	for _, r := range rows {
		for _, name := range r.Names {
			if !known[r.Heading+": "+name] {
				t.Errorf("%s has a row for %s under %q, which is not in the list", path, name, r.Heading)
			}
		}
	}
	return rows
}

// OwnFlags returns the flags of a command, such as "rtrace-bpf" or "rtrace mprof", that follow
// the command in a text.
func OwnFlags(text, command string) (all []string) {
	for _, code := range codes(text) {
		rest, ok := strings.CutPrefix(code, command+" ")
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest+" ", "-- ")
		for word := range strings.FieldsSeq(rest) {
			if strings.HasPrefix(word, "-") {
				all = append(all, strings.TrimLeft(word, "-"))
			}
		}
	}
	return all
}

// Commands returns the subcommands of rtrace that a text names.
func Commands(text string) (all []string) {
	for _, code := range codes(text) {
		if words := strings.Fields(code); len(words) > 1 && words[0] == "rtrace" {
			all = append(all, words[1])
		}
	}
	return all
}
