package cli

import (
	"fmt"
	"io"
	"strings"
)

// WriteMan prints the page as a manual page of section 1. also are other pages to see.
func (p *Page) WriteMan(w io.Writer, also []string) error {
	var m man
	title := strings.ToUpper(strings.ReplaceAll(p.Name, " ", "-"))
	m.line(".TH %s 1 \"\" rtrace-bpf", quoted(title))
	m.line(".nh")
	m.line(".SH NAME")
	m.line("%s \\- %s", roff(strings.ReplaceAll(p.Name, " ", "-")), roff(p.Summary))
	m.line(".SH SYNOPSIS")
	for i, s := range p.Synopsis {
		if i > 0 {
			m.line(".br")
		}
		m.line(".B %s", roff(p.Name))
		m.text(s)
	}
	m.line(".SH DESCRIPTION")
	for par := range strings.SplitSeq(strings.TrimSpace(p.About), "\n\n") {
		m.line(".PP")
		m.text(par)
	}
	for _, l := range p.Lists {
		m.line(".SH %s", quoted(strings.ToUpper(l.Title)))
		for _, r := range l.Rows {
			m.tagged(roff(r.Name), r.Text)
		}
	}
	if len(p.Flags) > 0 {
		m.line(".SH OPTIONS")
	}
	for _, g := range p.Flags {
		m.line(".SS %s", quoted(g.Title))
		for par := range paragraphs(g.About) {
			m.line(".PP")
			m.text(par)
		}
		for _, f := range g.Flags {
			m.tagged(f.roff(), f.Text)
		}
	}
	m.line(".SH EXAMPLES")
	m.examples(p.Examples)
	for _, g := range p.Flags {
		m.examples(g.Examples)
	}
	m.line(".SH EXIT STATUS")
	for _, r := range p.exit() {
		m.tagged(fmt.Sprint(int(r.Code)), r.Text)
	}
	if len(also) > 0 {
		m.line(".SH SEE ALSO")
		for i, name := range also {
			comma := ","
			if i == len(also)-1 {
				comma = ""
			}
			m.line(".BR %s (1)%s", roff(name), comma)
		}
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (m *man) examples(examples []Example) {
	for _, e := range examples {
		m.line(".PP")
		m.text(strings.ToUpper(e.Does[:1]) + e.Does[1:] + ":")
		m.line(".PP\n.RS 4\n.nf")
		m.text(e.Command)
		m.line(".fi\n.RE")
	}
}

// roff returns the flag as the tag of its paragraph.
func (f *Flag) roff() string {
	s := `\fB` + roff("--"+f.Long) + `\fR`
	if f.Short != "" {
		s = `\fB` + roff("-"+f.Short) + `\fR, ` + s
	}
	if f.Value != "" {
		s += ` \fI` + roff(f.Value) + `\fR`
	}
	return s
}

// man is a manual page that is being written.
type man struct{ b strings.Builder }

func (m *man) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

// text adds text that may begin like a request.
func (m *man) text(s string) {
	s = roff(s)
	if s != "" && (s[0] == '.' || s[0] == '\'') {
		s = `\&` + s
	}
	m.line("%s", s)
}

func (m *man) tagged(tag, text string) {
	m.line(".TP")
	m.line("%s", tag)
	m.text(text)
}

// roff escapes text so that it is printed unchanged.
func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", "'", `\(aq`, "`", "\\`", "^", `\(ha`, "~", `\(ti`).Replace(s)
}

// quoted returns an argument of a request.
func quoted(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `""`) + `"` }
