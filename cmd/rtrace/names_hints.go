package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/symbol/resolve"
)

// mostHints is how many files without names get a hint.
const mostHints = 3

// hint prints how to get the names that are missing, a line for each file.
func (n *nameFlags) hint(w io.Writer, r *resolve.Resolver) {
	if !n.wanted() || r == nil {
		return
	}
	all := slices.DeleteFunc(r.Nameless(), func(x resolve.Nameless) bool {
		return errors.Is(x.Err, resolve.ErrUnmapped) && knownRuntime(r.Program()) == "" // it need not be code
	})
	for i := range all[:min(mostHints, len(all))] {
		fmt.Fprintf(w, "hint: %s\n", printable.Name(n.advice(&all[i], r.Program())))
	}
	if more := len(all) - mostHints; more > 0 {
		fmt.Fprintf(w, "hint: names are missing in %s, too\n", plural(uint64(more), "other file"))
	}
}

// hints collects the hints of several traces.
type hints []string

// add adds those of a trace.
func (h *hints) add(n *nameFlags, r *resolve.Resolver) {
	var text strings.Builder
	n.hint(&text, r)
	for line := range strings.Lines(text.String()) {
		if !slices.Contains(*h, line) {
			*h = append(*h, line)
		}
	}
}

// print prints the first hints.
func (h *hints) print(w io.Writer) {
	for _, line := range (*h)[:min(mostHints, len(*h))] {
		fmt.Fprint(w, line)
	}
}

// advice returns how to get the names of a file, or of the code that a program generated.
func (n *nameFlags) advice(x *resolve.Nameless, program string) string {
	switch {
	case x.Path == "":
		return "code that the process generated has no names: " + generatedAdvice(program)
	case errors.Is(x.Err, resolve.ErrUnidentified):
		return fmt.Sprintf("no names for %s: the trace does not identify the file; -r uses the one that is there now", x.Path)
	case x.Err == nil:
		return fmt.Sprintf("no names for some functions of %s: install its debug symbols (Debian: find-dbgsym-packages %s), or%s", x.Path, x.Path, n.server())
	case errors.Is(x.Err, fs.ErrNotExist):
		return fmt.Sprintf("no names for %s: the file is missing; --root and --debug-dir name other folders, or%s", x.Path, n.server())
	}
	err := x.Err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return fmt.Sprintf("no names for %s: %v; --root and --debug-dir name other folders, or%s", x.Path, err, n.server())
}

// server returns how to ask a debuginfod server.
func (n *nameFlags) server() string {
	if n.symbols.servers != "" {
		return " ask another server with --debuginfod=URL"
	}
	return " ask a server with --debuginfod"
}

// runtimes are programs whose runtime can name the code that it generates, and how.
var runtimes = []struct{ program, advice string }{
	{"node", "start node with --perf-basic-prof"},
	{"java", "run jcmd PID Compiler.perfmap before the recording ends"},
	{"python", "start python3 (3.12 or newer) with -X perf"},
	{"dotnet", "record with --dotnet-perf-map"},
	{"php", "set opcache.jit_debug=16"},
	{"ruby", "start ruby with --yjit-perf"},
}

// knownRuntime returns how a program names the code that it generates, or an empty string.
func knownRuntime(program string) string {
	for _, r := range runtimes {
		if strings.HasPrefix(program, r.program) {
			return r.advice
		}
	}
	return ""
}

// generatedAdvice returns how to get names for the code that a program generates.
func generatedAdvice(program string) string {
	if advice := knownRuntime(program); advice != "" {
		return advice
	}
	return "its runtime has to write a perf map, /tmp/perf-PID.map, before the recording ends"
}
