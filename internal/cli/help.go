package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The size of the screen for help.
const (
	ScreenLines = 24
	ScreenWidth = 80
)

// Brief is the topic of help that fits on a screen: usage, what the command does, the flags
// that most people need, and examples.
const Brief = "brief"

// everything is the topic of the whole page.
const everything = "all"

// Topics returns the topics of the page's help, except [Brief].
func (p *Page) Topics() []string {
	topics := []string{everything, "about"}
	for _, l := range p.Lists {
		topics = append(topics, TopicOf(l.Title))
	}
	for _, g := range p.Flags {
		topics = append(topics, TopicOf(g.Title))
	}
	return append(topics, "examples", "exit-status")
}

// TopicOf returns a title as a word of a command line.
func TopicOf(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

// WriteHelp prints one topic of the page for a terminal. An unknown topic is a *UsageError.
func (p *Page) WriteHelp(w io.Writer, topic string) error {
	switch topic {
	case Brief:
		_, err := io.WriteString(w, p.brief())
		return err
	case everything:
		return p.WriteText(w)
	}
	if !slices.Contains(p.Topics(), topic) {
		if meant := Nearest(topic, p.Topics()); meant != "" {
			return Usagef("--help=%s: there is no such topic; did you mean --help=%s?", topic, meant)
		}
		return Usagef("--help=%s: there is no such topic; there are %s", topic, strings.Join(p.Topics(), ", "))
	}
	// A page with only the topic.
	only := Page{Name: p.Name}
	switch topic {
	case "about":
		only.About = p.About
	case "examples":
		only.Examples = p.Examples
	case "exit-status":
		only.Exit = p.exit()
	}
	for _, l := range p.Lists {
		if TopicOf(l.Title) == topic {
			only.Lists = append(only.Lists, l)
		}
	}
	for _, g := range p.Flags {
		if TopicOf(g.Title) == topic {
			only.Flags = append(only.Flags, g)
		}
	}
	var b strings.Builder
	only.writeBody(&b, topic == "exit-status")
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
}

// brief returns the screen.
func (p *Page) brief() string {
	var head, tail strings.Builder
	for i, s := range p.Synopsis[:min(3, len(p.Synopsis))] {
		label := "Usage: "
		if i > 0 {
			label = "       "
		}
		fmt.Fprintln(&head, strings.TrimRight(label+p.Name+" "+s, " "))
	}
	fmt.Fprintf(&head, "\n%s\n", strings.TrimSuffix(firstSentences(cmp.Or(p.Intro, p.About), 3, 4), "\n"))
	head.WriteString("\n")
	tail.WriteString("\n")
	for _, e := range p.Examples[:min(2, len(p.Examples))] {
		tail.WriteString("  " + e.Command + "\n")
	}
	more := p.Name + " --help=all"
	if p.More != "" {
		more = p.More
	} else if len(p.Flags) == 0 {
		more = p.Name + " help lists all subcommands, " + p.Name + " SUBCOMMAND --help explains one"
	} else if topics := p.Topics()[1:]; len(topics) > 0 {
		more += ", or =TOPIC: " + strings.Join(topics, ", ")
	}
	tail.WriteString("\n" + wrap("More: "+more, "", ScreenWidth))
	room := ScreenLines - strings.Count(head.String(), "\n") - strings.Count(tail.String(), "\n")
	return head.String() + p.common(room) + tail.String()
}

// common returns the flags that most people need, or without flags the rows of the first
// list, in at most that many lines.
func (p *Page) common(lines int) string {
	var rows []ListRow
	for _, g := range p.Flags {
		for _, f := range g.Flags {
			rows = append(rows, ListRow{f.Long, f.Text})
		}
	}
	if len(rows) == 0 && len(p.Lists) > 0 {
		rows = p.Lists[0].Rows
	}
	if p.Common != nil {
		chosen := make([]ListRow, 0, len(p.Common))
		for _, c := range p.Common {
			if i := slices.IndexFunc(rows, func(r ListRow) bool { return r.Name == c.Name }); i >= 0 && c.Text == "" {
				c.Text = rows[i].Text
			}
			chosen = append(chosen, c)
		}
		rows = chosen
	}
	const column = 24 // column of the texts
	var b strings.Builder
	for _, r := range rows {
		text := strings.TrimSuffix(wrap(firstClause(r.Text), strings.Repeat(" ", column), ScreenWidth), "\n")
		name := "  " + p.spec(r.Name)
		if len(name)+2 <= column {
			text = name + text[min(len(name), len(text)):]
		} else {
			text = name + "\n" + text
		}
		if n := 1 + strings.Count(text, "\n"); n <= lines {
			lines -= n
			b.WriteString(text + "\n")
		}
	}
	return b.String()
}

// spec returns a flag with its short name and its value, or another name unchanged.
func (p *Page) spec(name string) string {
	for _, g := range p.Flags {
		for _, f := range g.Flags {
			if f.Long != name {
				continue
			}
			spec := "    --" + f.Long
			if f.Short != "" {
				spec = "-" + f.Short + ", --" + f.Long
			}
			switch {
			case f.Optional:
				spec += "[=" + f.Value + "]"
			case f.Value != "":
				spec += " " + f.Value
			}
			return spec
		}
	}
	return name
}

// firstClause returns the beginning of a text, up to the first clause that stands alone.
func firstClause(text string) string {
	for _, end := range []string{"; ", " (", ": "} {
		if i := strings.Index(text, end); i > 20 {
			text = text[:i]
		}
	}
	return text
}

// firstSentences returns the first sentences of the first paragraph, within the given
// numbers of sentences and lines.
func firstSentences(about string, sentences, lines int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(about), "\n\n")
	best := ""
	for i, n := 0, 0; n < sentences && i < len(first); n++ {
		end := strings.Index(first[i:], ". ")
		if end < 0 {
			i = len(first)
		} else {
			i += end + 2
		}
		text := wrap(first[:i], "", ScreenWidth)
		if best != "" && strings.Count(text, "\n") > lines {
			break
		}
		best = text
	}
	return best
}
