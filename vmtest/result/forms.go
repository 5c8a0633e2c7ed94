package result

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// junit is the format that most continuous integration systems read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Seconds  string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Seconds string        `xml:"time,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes runs as JUnit's XML, one suite per kernel.
func JUnit(w io.Writer, runs []*Run) error {
	var all junitSuites
	for _, r := range runs {
		s := junitSuite{
			Name: r.name(), Tests: len(r.Tests), Failures: r.Count(Failed), Skipped: r.Count(Skipped),
			Seconds: fmt.Sprintf("%.3f", r.Seconds),
		}
		for _, t := range r.Tests {
			c := junitCase{Class: t.Package, Name: t.title(), Seconds: fmt.Sprintf("%.3f", t.Seconds)}
			switch t.Status {
			case Failed:
				c.Failure = &junitMessage{firstLine(t.Output), printable(t.Output)}
			case Skipped:
				c.Skipped = &junitMessage{Message: t.Reason()}
			}
			s.Cases = append(s.Cases, c)
		}
		if why := r.whole(); why != "" {
			c := junitCase{Class: "machine", Name: "boot", Seconds: "0.000"}
			if r.Broken != "" {
				c.Error = &junitMessage{Message: printable(why)}
				s.Errors++
			} else {
				c.Skipped = &junitMessage{Message: printable(why)}
				s.Skipped++
			}
			s.Tests++
			s.Cases = append(s.Cases, c)
		}
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// TAP writes runs in the Test Anything Protocol, version 13.
func TAP(w io.Writer, runs []*Run) error {
	var b strings.Builder
	n := 0
	line := func(good bool, name, directive string) {
		n++
		word := "ok"
		if !good {
			word = "not ok"
		}
		fmt.Fprintf(&b, "%s %d - %s%s\n", word, n, strings.ReplaceAll(name, "#", `\#`), directive)
	}
	for _, r := range runs {
		for _, t := range r.Tests {
			name := r.name() + " " + t.Package + " " + t.title()
			switch t.Status {
			case Passed:
				line(true, name, "")
			case Skipped:
				line(true, name, " # SKIP "+t.Reason())
			case Failed:
				line(false, name, "")
				for text := range strings.Lines(printable(t.Output)) {
					b.WriteString("# " + strings.TrimRight(text, "\n") + "\n")
				}
			}
		}
		switch {
		case r.Broken != "":
			line(false, r.name()+" machine", "")
			fmt.Fprintf(&b, "# %s\n", oneLine(r.Broken))
		case r.Missing != "":
			line(true, r.name()+" machine", " # SKIP "+oneLine(r.Missing))
		}
	}
	_, err := fmt.Fprintf(w, "TAP version 13\n1..%d\n%s", n, b.String())
	return err
}

func (r *Run) name() string { return "linux-" + r.Title + "-" + r.Arch }

// whole describes a run without its tests.
func (r *Run) whole() string {
	if r.Broken != "" {
		return r.Broken
	}
	return r.Missing
}

func (t *Test) title() string {
	if t.Name == "" {
		return "(package)"
	}
	return t.Name
}

// Reason returns why a test was skipped, without the position in the source.
func (t *Test) Reason() string {
	var lines []string
	for line := range strings.Lines(t.Output) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "--- ") || line == "" {
			continue
		}
		if place, text, ok := strings.Cut(line, ": "); ok && strings.Contains(place, ".go:") && !strings.Contains(place, " ") {
			line = text
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "(no reason given)"
	}
	return oneLine(strings.Join(lines, " "))
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--- ") {
			return printable(line)
		}
	}
	return ""
}

func oneLine(text string) string { return printable(strings.Join(strings.Fields(text), " ")) }

// printable removes what XML cannot contain and a terminal should not receive.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == 0xfffd || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
