package sprtrace

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated part of the format page")

const (
	page      = "../../../docs/formats/sprtrace.md"
	pageBegin = "<!-- generated: packets -->\n"
	pageEnd   = "<!-- end -->\n"
)

// tables returns the packets as they appear on the format page.
func tables() string {
	var b strings.Builder
	for i := range Packets {
		p := &Packets[i]
		fmt.Fprintf(&b, "### %s\n\n%s%s. Code 0x%08x", p.Name, strings.ToUpper(p.Note[:1]), p.Note[1:], p.Code)
		if code := p.Buggy(); code != 0 {
			fmt.Fprintf(&b, ", in 1.0 `%s`", Letters(code))
		}
		if p.Since != 0 {
			fmt.Fprintf(&b, ", since %d.%d", p.Since.Major(), p.Since.Minor())
		}
		b.WriteString(".\n\n")
		for _, l := range p.Layouts {
			if l.Name != "" {
				fmt.Fprintf(&b, "Layout *%s*: %s.\n\n", l.Name, l.Note)
			}
			b.WriteString("| field | type | |\n|---|---|---|\n")
			for _, f := range l.Fields {
				note := f.Note
				if f.Since != 0 {
					since := fmt.Sprintf("since %d.%d", f.Since.Major(), f.Since.Minor())
					note = strings.Trim(since+"; "+note, "; ")
				}
				fmt.Fprintf(&b, "| %s | %s | %s |\n", f.Name, f.Type, strings.ReplaceAll(note, "|", "\\|"))
			}
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// The format page contains the tables that the code uses.
func TestFormatPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), pageBegin)
	got, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no generated part", page)
	}
	want := tables()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s is stale: run go test ./internal/wire/sprtrace -update", page)
	}
	if err := os.WriteFile(page, []byte(before+pageBegin+want+pageEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
