package cli

import (
	"fmt"
	"io"
	"iter"
	"strings"
)

// Width is the number of columns of help.
const Width = 100

// Page is the help of one command. It prints itself as text for a terminal and as Markdown
// for docs/cli, from the same fields.
type Page struct {
	Name     string   // as typed: "rtrace convert"
	Summary  string   // one line, lower case, no full stop
	Synopsis []string // one line per way of use, without Name
	Intro    string   // up to three sentences for the brief help; empty: the first ones of About
	About    string   // paragraphs, separated by an empty line, one line each
	Lists    []List
	Flags    []FlagGroup
	Examples []Example
	Exit     []ExitRow // meaning of each exit code; nil for CommonExit
	// Common are the flags in the brief help, by their long names, with shorter texts or
	// none; nil: the first flags. Without flags they are rows of the first list.
	Common  []ListRow
	Command bool   // a command may follow --, and only flags come before it
	More    string // text after "More:" in the brief help; empty: the topics of the page
}

// List is a titled table of names and their descriptions.
type List struct {
	Title string
	Rows  []ListRow
}

// ListRow is one entry of a List.
type ListRow struct {
	Name, Text string
}

// FlagGroup is a group of flags, as their flag library prints them.
type FlagGroup struct {
	Title    string // "Output"
	About    string // paragraphs, as in Page; may be empty
	Usage    string // lines, each indented by two columns
	Flags    []Flag // the same flags one by one
	Examples []Example
}

// Flag is one flag.
type Flag struct {
	Long, Short string // without hyphens; Short may be empty
	Value       string // name of its value, empty if it takes none
	Text        string // what it does
	Optional    bool   // its value may be left out, and otherwise follows =
	Offer       Offer  // what a shell offers for the value
}

// Offer is what a shell offers for the value of a flag.
type Offer struct {
	Things    Things
	Words     []string // for OfferWords
	Separator string   // between several values in one; empty if there is one value
}

// Things are a kind of things that a shell can list.
type Things int

// The kinds of things.
const (
	OfferNothing Things = iota
	OfferFiles
	OfferFolders
	OfferProcesses // their IDs
	OfferCommands  // names of running processes
	OfferUsers
	OfferWords
)

// Example is a command line and what it does.
type Example struct {
	Does    string // lower case, no full stop
	Command string
}

// ExitRow is the meaning of one exit code.
type ExitRow struct {
	Code ExitCode
	Text string
}

// CommonExit is the meaning of the exit codes for commands that read traces.
var CommonExit = []ExitRow{
	{OK, "done"},
	{Failed, "failed"},
	{Usage, "the command line is wrong"},
	{Incomplete, "done, but the input is incomplete: it was cut, its tracer did not finish, or it has records that cannot be read"},
	{BrokenPipe, "the reader of the output went away, as head does"},
}

// Has reports whether the page lists a flag. flag is its long or short name with hyphens.
func (p *Page) Has(flag string) bool {
	for _, g := range p.Flags {
		for _, f := range g.Flags {
			if flag == "--"+f.Long || f.Short != "" && flag == "-"+f.Short {
				return true
			}
		}
	}
	return false
}

func (p *Page) exit() []ExitRow {
	if p.Exit != nil {
		return p.Exit
	}
	return CommonExit
}

// WriteText prints the page for a terminal.
func (p *Page) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s - %s\n\nUsage:\n", p.Name, p.Summary)
	for _, s := range p.Synopsis {
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(p.Name+" "+s))
	}
	p.writeBody(&b, true)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeBody adds the part after the usage, with or without the exit status.
func (p *Page) writeBody(b *strings.Builder, exit bool) {
	for par := range paragraphs(p.About) {
		b.WriteString("\n" + wrap(par, "", Width))
	}
	for _, l := range p.Lists {
		b.WriteString("\n" + l.Title + ":\n")
		for _, r := range l.Rows {
			fmt.Fprintf(b, "  %-*s  %s\n", l.width(), r.Name, r.Text)
		}
	}
	for _, g := range p.Flags {
		fmt.Fprintf(b, "\n%s:\n", g.Title)
		for par := range paragraphs(g.About) {
			b.WriteString(wrap(par, "  ", Width) + "\n")
		}
		fmt.Fprintf(b, "%s\n", strings.TrimRight(g.Usage, "\n"))
		if len(g.Examples) > 0 {
			b.WriteString("\n")
		}
		writeExamples(b, g.Examples)
	}
	if len(p.Examples) > 0 {
		b.WriteString("\nExamples:\n")
	}
	writeExamples(b, p.Examples)
	if exit {
		b.WriteString("\nExit status:\n")
		for _, r := range p.exit() {
			fmt.Fprintf(b, "  %d  %s\n", r.Code, r.Text)
		}
	}
}

func writeExamples(b *strings.Builder, examples []Example) {
	for _, e := range examples {
		fmt.Fprintf(b, "  %s:\n      %s\n", e.Does, e.Command)
	}
}

// paragraphs returns the paragraphs of a text.
func paragraphs(text string) iter.Seq[string] {
	if text == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(strings.TrimSpace(text), "\n\n")
}

// WriteMarkdown prints the page for docs/cli.
func (p *Page) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- Generated from the flags; refresh with: go test ./cmd/... -run Docs -update -->\n")
	fmt.Fprintf(&b, "# %s\n\n%s%s.\n\n```\n", p.Name, strings.ToUpper(p.Summary[:1]), p.Summary[1:])
	for _, s := range p.Synopsis {
		fmt.Fprintf(&b, "%s\n", strings.TrimSpace(p.Name+" "+s))
	}
	b.WriteString("```\n")
	for par := range paragraphs(p.About) {
		b.WriteString("\n" + wrap(par, "", Width))
	}
	for _, l := range p.Lists {
		fmt.Fprintf(&b, "\n## %s\n\n", l.Title)
		for _, r := range l.Rows {
			fmt.Fprintf(&b, "* `%s`: %s\n", r.Name, r.Text)
		}
	}
	for _, g := range p.Flags {
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for par := range paragraphs(g.About) {
			b.WriteString("\n" + wrap(par, "", Width))
		}
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimRight(g.Usage, "\n"))
		markdownExamples(&b, g.Examples)
	}
	if len(p.Examples) > 0 {
		b.WriteString("\n## Examples\n")
	}
	markdownExamples(&b, p.Examples)
	b.WriteString("\n## Exit status\n\n")
	for _, r := range p.exit() {
		fmt.Fprintf(&b, "* %d: %s\n", r.Code, r.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownExamples(b *strings.Builder, examples []Example) {
	for _, e := range examples {
		fmt.Fprintf(b, "\n%s%s:\n\n```\n%s\n```\n", strings.ToUpper(e.Does[:1]), e.Does[1:], e.Command)
	}
}

func (l *List) width() int {
	n := 0
	for _, r := range l.Rows {
		n = max(n, len(r.Name))
	}
	return n
}

// wrap breaks text at spaces into lines of at most width columns, each
// indented and ended by a newline.
func wrap(text, indent string, width int) string {
	var b strings.Builder
	col := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case col == 0:
			b.WriteString(indent)
			col = len(indent)
		case col+1+len(word) > width:
			b.WriteString("\n" + indent)
			col = len(indent)
		default:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += len(word)
	}
	if col > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}
