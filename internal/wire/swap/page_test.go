package swap

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated part of the format page")

const (
	page      = "../../../docs/formats/swap.md"
	pageBegin = "<!-- generated: messages -->\n"
	pageEnd   = "<!-- end -->\n"
)

// tables returns the tables of this package as they appear on the format page.
func tables() string {
	var b strings.Builder
	b.WriteString("## Letters\n\n| letter | bytes | |\n|---|---|---|\n")
	for _, l := range Letters {
		size := fmt.Sprint(l.Size)
		switch {
		case l.Array:
			size = fmt.Sprintf("12 + %d n", l.Size)
		case l.Letter == 's':
			size = "n + 1"
		}
		fmt.Fprintf(&b, "| `%c` | %s | %s |\n", l.Letter, size, l.Note)
	}
	b.WriteString("\n## Messages\n\n")
	for i := range Messages {
		m := &Messages[i]
		fmt.Fprintf(&b, "### %04X %s\n\n%s%s.\n\n", m.ID, m.Name, strings.ToUpper(m.Note[:1]), m.Note[1:])
		layouts(&b, m)
	}
	b.WriteString("## Packets of the control channel\n\n")
	for i := range Controls {
		m := &Controls[i]
		note := ""
		if m.Note != "" {
			note = ": " + m.Note
		}
		fmt.Fprintf(&b, "### %04X %s\n\n", m.ID, m.Name+note)
		layouts(&b, m)
	}
	fmt.Fprintf(&b, "## UI hierarchy file\n\n%s%s.\n\n", strings.ToUpper(UIFile.Note[:1]), UIFile.Note[1:])
	layouts(&b, &UIFile)
	b.WriteString("## Functions\n\nOf PROBE_MEMORY; from 0x10000 on our own:\n\n| number | function | arguments |\n|---|---|---|\n")
	number := func(id uint32) string {
		if id >= FirstOwnAPI {
			return fmt.Sprintf("%#x", id)
		}
		return fmt.Sprint(id)
	}
	for _, a := range MemoryAPIs {
		fmt.Fprintf(&b, "| %s | `%s` | `%s` |\n", number(a.ID), a.Name, a.Args)
	}
	b.WriteString("\nOf the other probes, as far as they are known:\n\n| number | function |\n|---|---|\n")
	for _, a := range OtherAPIs {
		fmt.Fprintf(&b, "| %s | `%s` |\n", number(a.ID), a.Name)
	}
	return b.String()
}

func layouts(b *strings.Builder, m *Message) {
	if m.Layouts == nil {
		b.WriteString("Its fields are not known.\n\n")
	}
	for i, l := range m.Layouts {
		if l.Name != "" {
			note := ""
			if l.Note != "" {
				note = ": " + l.Note
			}
			fmt.Fprintf(b, "Layout *%s*%s.\n\n", l.Name, note)
		}
		switch {
		case len(l.Fields) == 0:
			b.WriteString("No fields.\n\n")
			continue
		case l.Name == "bare":
			fmt.Fprintf(b, "The first %d fields.\n\n", len(l.Fields))
			continue
		case i > 0 && m == &UIFile:
			b.WriteString("The first 2 fields.\n\n")
			continue
		}
		b.WriteString("| field | type | |\n|---|---|---|\n")
		fields(b, l.Fields, "", m.Tail)
		b.WriteByte('\n')
	}
}

func fields(b *strings.Builder, list []Field, in, tail string) {
	for i := range list {
		f := &list[i]
		name := in + f.Name
		if tail != "" && i >= Common {
			name = tail + "." + name
		}
		var notes []string
		switch {
		case f.Type == List && f.Count == PerCPU:
			notes = append(notes, "one for each processor, without a count")
		case f.Type == List && f.Count == PerDevice:
			notes = append(notes, "one for each device, without a count")
		case f.Type == List:
			notes = append(notes, "a u32 count and as many elements")
		}
		if f.Note != "" {
			notes = append(notes, f.Note)
		}
		if f.If != "" {
			var when []string
			for v := range 32 {
				if f.Is>>v&1 != 0 {
					when = append(when, fmt.Sprint(v))
				}
			}
			notes = append(notes, fmt.Sprintf("only if %s is %s", f.If, strings.Join(when, ", ")))
		}
		for _, v := range f.Values {
			notes = append(notes, fmt.Sprintf("%d %s", v.Number, v.Name))
		}
		what := f.Type.String()
		if f.Type == List && f.Elements[0].Name == "" {
			what += " of " + f.Elements[0].Type.String()
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, what, strings.ReplaceAll(strings.Join(notes, "; "), "|", "\\|"))
		if f.Type == List && f.Elements[0].Name != "" {
			fields(b, f.Elements, name+"[].", "")
		}
	}
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
		t.Fatalf("%s is stale: run go test ./internal/wire/swap -update", page)
	}
	if err := os.WriteFile(page, []byte(before+pageBegin+want+pageEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every message has a line in the table of messages that are recorded live.
func TestPageListsLive(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "## What is recorded live\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	for i := range Messages {
		if !strings.Contains(section, "`"+Messages[i].Name+"`") {
			t.Errorf("%s is not in the table of messages recorded live", Messages[i].Name)
		}
	}
}
