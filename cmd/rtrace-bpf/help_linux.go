package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/cli"
)

// overview is the help of the program itself.
func overview() *cli.Page {
	list := cli.List{Title: "Verbs"}
	for _, v := range verbs() {
		list.Rows = append(list.Rows, cli.ListRow{Name: v.name, Text: v.page().Summary})
	}
	topics := cli.List{Title: "Topics"}
	for _, g := range recordPage().Flags {
		if g.Title != "General" {
			topics.Rows = append(topics.Rows, cli.ListRow{Name: cli.TopicOf(g.Title), Text: topicTexts[g.Title]})
		}
	}
	return &cli.Page{
		Name:     name,
		Command:  true,
		Summary:  "trace the allocations of running processes, or of a command from its start",
		Synopsis: []string{"[record] -p PID [flags]", "[record] [flags] -- COMMAND [ARGUMENT...]", "VERB [flags]", "help [VERB|TOPIC]", "--version"},
		Intro: "Records every allocation and free of a running process with its stack, until Ctrl-C, the end of the process or --duration. " +
			"The process is not restarted. Without a verb, rtrace-bpf records.",
		About: "Without a verb, rtrace-bpf does what record does: rtrace-bpf -p PID records. VERB --help prints the most important flags of a verb on one screen, " +
			"help VERB explains it, and help TOPIC explains one part of record.\n\n" +
			"What follows -- is a command, whatever its name is: rtrace-bpf -- plan traces the program plan.",
		Lists:  []cli.List{list, topics},
		Common: overviewRows(list.Rows),
		Examples: []cli.Example{
			{Does: "trace until Ctrl-C, then print what is still live, and where it was allocated", Command: "sudo rtrace-bpf -p 4711; rtrace leaks -r rtrace-raw-4711-0"},
			{Does: "trace a command from its first call to its end", Command: "sudo rtrace-bpf -o app.trace -- ./app --flag"},
			{Does: "see where the probes would go", Command: "sudo rtrace-bpf plan -p 4711"},
		},
		More: name + " --help=all, VERB --help, help TOPIC: " + strings.Join(topicNames(), ", "),
		Exit: recordPage().Exit,
	}
}

// shortTexts are summaries of verbs that fit into a line of the brief help.
var shortTexts = map[string]string{
	"record":  "record every call, into a trace (without a verb, too)",
	"explain": "show where the resident memory is, without probes",
	"top":     "show who allocates and what stays live, while it happens",
	"plan":    "print what record would probe, and touch nothing",
	"modules": "list what record -e can trace besides memory",
}

// overviewRows returns the rows of the brief help: the verbs, and flags that most people
// need.
func overviewRows(verbs []cli.ListRow) []cli.ListRow {
	rows := slices.Clone(verbs)
	for i := range rows {
		rows[i].Text = cmp.Or(shortTexts[rows[i].Name], rows[i].Text)
	}
	return append(rows,
		cli.ListRow{Name: "-p, --pid PID", Text: "this process; separate several with commas"},
		cli.ListRow{Name: "    --comm NAME", Text: "all processes with this name"},
	)
}

// topicTexts describe the topics of help: groups of flags of record.
var topicTexts = map[string]string{
	"What is traced": "which processes; commands, --wait and --follow-forks",
	"Allocators":     "which allocators, which calls, the state of the heap",
	"Modules":        "other resources than memory, and functions of your own",
	"Dotnet":         "the events of a .NET runtime",
	"Stacks":         "how deep, and how they are found",
	"Output":         "where traces go",
	"Formats":        "the formats of traces, and flags for one of them",
	"Recording":      "when a recording begins, pauses and ends; buffers",
}

// topicNames returns the names of the topics of help that are groups of flags.
func topicNames() []string {
	var names []string
	for _, g := range recordPage().Flags {
		if g.Title != "General" {
			names = append(names, cli.TopicOf(g.Title))
		}
	}
	return names
}

// helpPage is the help of help.
func helpPage() *cli.Page {
	return &cli.Page{
		Name: name + " help", Summary: "explain a verb or a topic", Synopsis: []string{"[VERB|TOPIC]"},
		About: "Without an argument, lists the verbs and topics. With a verb, explains the verb and lists its flags. " +
			"With a topic, explains one part of record, such as formats or dotnet; the topic all is everything.",
		Examples: []cli.Example{
			{Does: "list the flags of record", Command: name + " help record"},
			{Does: "list the flags that are about formats", Command: name + " help formats"},
		},
		Exit: plainExit,
	}
}

// helpVerb is the verb that explains verbs and topics.
func helpVerb(_ context.Context, s cli.Streams, args []string, _ settings) cli.ExitCode {
	return cli.Report(s.Err, name, writeHelp(s.Out, args))
}

func writeHelp(w io.Writer, args []string) error {
	switch {
	case len(args) == 0:
		return overview().WriteText(w)
	case len(args) > 1:
		return cli.Usagef("help takes one verb or topic")
	case strings.HasPrefix(args[0], "-"):
		return helpPage().WriteHelp(w, cli.Brief)
	}
	word := args[0]
	v, isVerb := findVerb(word)
	isTopic := slices.Contains(recordPage().Topics(), word)
	var b bytes.Buffer
	if isVerb {
		if err := general(v.page()).WriteText(&b); err != nil {
			return err
		}
	}
	if isVerb && isTopic {
		b.WriteString("\nIn " + name + " record:\n\n")
	}
	if isTopic {
		if err := recordPage().WriteHelp(&b, word); err != nil {
			return err
		}
	}
	if b.Len() == 0 {
		all := slices.Concat(verbNames(), recordPage().Topics())
		if meant := cli.Nearest(word, all); meant != "" {
			return cli.Usagef("%s: there is no such verb or topic; did you mean %s help %s?", cli.Word(word), name, meant)
		}
		return cli.Usagef("%s: there is no such verb or topic; there are %s", cli.Word(word), strings.Join(all, ", "))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// ofTheirOwn are groups of flags that only their topics list.
var ofTheirOwn = []string{"Modules", "Dotnet", "Formats"}

// general returns a page without the groups of flags that only their topics list, and names
// these.
func general(page *cli.Page) *cli.Page {
	p := *page
	var left []string
	p.Flags = slices.DeleteFunc(slices.Clone(p.Flags), func(g cli.FlagGroup) bool {
		if slices.Contains(ofTheirOwn, g.Title) {
			left = append(left, cli.TopicOf(g.Title))
			return true
		}
		return false
	})
	if len(left) > 0 {
		p.About += fmt.Sprintf("\n\nMore flags: %s help %s.", name, strings.Join(left, ", "+name+" help "))
	}
	return &p
}
