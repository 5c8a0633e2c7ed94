// Rtrace reads the traces that rtrace-bpf writes: it prints, filters, converts
// and examines them. Every subcommand has a page in docs/cli.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"rtrace-bpf/internal/cli"
)

func main() {
	ctx, streams := attach(os.Stdin, os.Stdout, os.Stderr)
	os.Exit(int(run(ctx, streams, os.Args)))
}

// run runs the whole program: args[0] is the name under which it was started.
func run(ctx context.Context, s cli.Streams, args []string) cli.ExitCode {
	out := &checkedWriter{Writer: s.Out}
	s.Out = out
	name, err := dispatch(ctx, s, args)
	if out.err != nil && isIncomplete(err) {
		err = out.err
	}
	code := cli.Report(s.Err, name, err)
	if errors.Is(err, syscall.EPIPE) {
		return cli.BrokenPipe // SIGPIPE is ignored, or it is another output
	}
	return code
}

// checkedWriter keeps the first error of a writer.
type checkedWriter struct {
	io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// dispatch runs the command in args. It returns the name for messages about its error.
func dispatch(ctx context.Context, s cli.Streams, args []string) (string, error) {
	const self = "rtrace"
	name, args := invokedAs(args)
	if name == "" {
		if len(args) == 0 {
			return self, overview().WriteHelp(s.Out, cli.Brief)
		}
		name, args = args[0], args[1:]
	}
	switch name {
	case "-h", "--help":
		return self, overview().WriteHelp(s.Out, cli.Brief)
	case "help":
		return self, help(s, args)
	case "--version":
		_, err := fmt.Fprintln(s.Out, self, cli.BuildVersion())
		return self, err
	}
	if name == "--generate" && len(args) == 1 { // for make install
		return self, program().Generate(args[0], "rtrace-bpf")
	}
	c, ok := find(name)
	if !ok {
		return self, unknown(name, args)
	}
	return self + " " + c.name, c.run(ctx, s, args)
}

// otherName is the meaning of a link with another name: a subcommand, and arguments before
// the given ones.
type otherName struct {
	subcommand string
	args       []string
}

// otherNames are the names of original programs that mean a subcommand with arguments.
var otherNames = map[string]otherName{
	"mptrace":                 {"mptrace", []string{"--as-mptrace"}},
	"rtrace-allocmap-animate": {"allocmap", []string{"--animate"}},
	"rtrace-graphs-function":  {"graphs", []string{"function"}},
	"rtrace-graphs-overview":  {"graphs", []string{"overview"}},
}

// invokedAs removes the name of the program from args. If the program was linked as
// "rtrace-NAME", as "sp-rtrace-NAME" or as one of otherNames, it returns that subcommand's
// name.
func invokedAs(args []string) (subcommand string, rest []string) {
	if len(args) == 0 {
		return "", nil
	}
	base := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if other, ok := otherNames[base]; ok {
		return other.subcommand, slices.Concat(other.args, args[1:])
	}
	name, ok := strings.CutPrefix(base, "sp-rtrace-")
	if !ok {
		name, ok = strings.CutPrefix(base, "rtrace-")
	}
	if ok {
		if _, ok := find(name); ok {
			return name, args[1:]
		}
	}
	return "", args[1:]
}

func find(name string) (command, bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

// unknown returns the error for an unknown subcommand, with what was probably meant.
func unknown(name string, args []string) error {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	if strings.HasPrefix(name, "-") {
		if i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(names, arg) }); i >= 0 {
			return cli.Usagef("%s: flags come after the subcommand; did you mean rtrace %s %s?", name, args[i], name)
		}
		return cli.Usagef("unknown flag %s", name)
	}
	if meant := cli.Nearest(name, names); meant != "" {
		return cli.Usagef("unknown subcommand %q; did you mean rtrace %s?", name, meant)
	}
	if _, err := os.Stat(name); err == nil {
		return cli.Usagef("%s is a file, and the subcommand is missing; did you mean rtrace info %s?", name, name)
	}
	return cli.WithHint(cli.Usagef("unknown subcommand %q", name), "rtrace help lists the subcommands")
}

// help prints the page of the subcommand in args.
func help(s cli.Streams, args []string) error {
	switch len(args) {
	case 0:
		return overview().WriteText(s.Out)
	case 1:
		c, ok := find(args[0])
		if !ok {
			return unknown(args[0], nil)
		}
		return c.helpPage().WriteText(s.Out)
	}
	return cli.Usagef("help takes one subcommand")
}

// overview returns the help of the program itself.
func overview() *cli.Page {
	list := cli.List{Title: "Subcommands"}
	for _, c := range commands() {
		list.Rows = append(list.Rows, cli.ListRow{Name: c.name, Text: c.page.Summary})
	}
	return &cli.Page{
		Name:     "rtrace",
		Summary:  "read, convert and examine allocation traces",
		Synopsis: []string{"SUBCOMMAND [flags] [FILE]", "help SUBCOMMAND", "--version"},
		About: "FILE is a trace in any format that rtrace knows, uncompressed or compressed with gzip or zstd. Without FILE, or with -, rtrace reads the trace from " +
			"standard input. A page, a picture, a graph or a binary trace is written to a terminal only with -o -.\n\n" +
			"If the program is started under the name rtrace-NAME or sp-rtrace-NAME, it runs the subcommand NAME. Under the names mptrace, rtrace-graphs-overview, " +
			"rtrace-graphs-function and rtrace-allocmap-animate it replaces the programs of these names.",
		Lists: []cli.List{list},
		Common: []cli.ListRow{
			{Name: "info"},
			{Name: "report"},
			{Name: "leaks"},
			{Name: "top", Text: "print who allocates most"},
			{Name: "diff", Text: "print what grew between two traces or moments"},
			{Name: "timeline", Text: "show how much memory is allocated over time"},
			{Name: "heapmap", Text: "draw a map of the allocated memory"},
			{Name: "resolve", Text: "name functions and source lines in a trace"},
			{Name: "convert"},
			{Name: "replay", Text: "try the calls of a trace with other mallocs"},
		},
		Examples: []cli.Example{
			{Does: "show what a trace contains", Command: "rtrace info rtrace-raw-4711-0"},
			{Does: "print the calls as one JSON object per line", Command: "rtrace convert -f jsonl rtrace-raw-4711-0"},
		},
	}
}
