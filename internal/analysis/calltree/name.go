package calltree

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/trace"
)

// name is the name of a frame and its parts. The zero name belongs to a frame
// that is not a node.
type name struct {
	text     string // the whole name
	function string // C functions end in (); empty if unknown or joined
	place    string // "in LIBRARY" or "at FILE:LINE"; empty if unknown or joined
	file     string // the library or source file
	stop     bool   // ignore the frames outside of this one
}

// namer names frames.
type namer struct {
	opts   *Options
	frames map[string]name // by text
}

// frame returns the name of frame i of a stack.
func (n *namer) frame(pid int32, s *trace.Stack, i int) name {
	text := ""
	if len(s.Names) == len(s.Frames) {
		text = s.Names[i]
	}
	if (text == "" || text == frametext.Unknown) && n.opts.Name != nil {
		text = n.opts.Name(pid, s.Frames[i])
	}
	if got, ok := n.frames[text]; ok {
		return got
	}
	text = sites.Printable(strings.TrimSpace(text))
	p := sites.ParsePlace(text)
	if strings.HasPrefix(text, p.Function+"()") && p.Function != "" && !strings.HasSuffix(p.Function, "()") {
		p.Function += "()"
	}
	got := n.place(&p)
	n.frames[strings.Clone(text)] = got
	return got
}

// caller returns the name of the caller of a call without a stack.
func (n *namer) caller(c *trace.Caller) name {
	p := sites.Place{Function: c.Function, File: sites.Printable(c.File), Line: c.Line}
	if p.Function != "" && n.opts.Source != nil {
		p.Function = n.opts.Source(p.Function)
	}
	p.Function = sites.Printable(p.Function)
	if p.Function != "" && !strings.Contains(p.Function, "(") {
		p.Function += "()"
	}
	return n.place(&p)
}

// place returns the name of a place.
func (n *namer) place(p *sites.Place) name {
	lib := Library(p.Module)
	var got name
	switch {
	case p.Function == "" && p.File == "":
		got = name{text: lib, file: lib}
	case p.File != "":
		got = name{function: p.Function, place: "at " + p.File, file: p.File}
		if p.Line != 0 {
			got.place += ":" + strconv.FormatUint(p.Line, 10)
		}
	case lib != "":
		got = name{function: p.Function, place: "in " + lib, file: lib}
	default:
		got = name{function: p.Function}
	}
	switch base := beforeParameters(p.Function); {
	case base != "" && slices.Contains(n.opts.Join, base):
		got = name{text: base + "()", file: got.file}
	case p.File != "" && (slices.Contains(n.opts.Join, p.File) || slices.Contains(n.opts.Join, path.Base(p.File))):
		got = name{text: p.File, file: p.File}
	case lib != "" && slices.Contains(n.opts.Join, lib):
		got = name{text: lib, file: lib}
	case got.text == "":
		got.text = strings.TrimSpace(got.function + " " + got.place)
	}
	if got.text == "" || n.ignore(got.text) {
		return name{}
	}
	got.stop = prefixed(got.text, n.opts.Stop)
	return got
}

// ignore reports whether the options leave out the node with this name.
func (n *namer) ignore(text string) bool {
	o := n.opts
	if !prefixed(text, o.Ignore) {
		middle := false
		for _, part := range o.IgnoreMiddle {
			middle = middle || strings.Contains(text, part)
		}
		if !middle {
			return false
		}
	}
	return !prefixed(text, o.Keep)
}

// Library returns the short name of a file: its base name, for libraries
// without the suffix from ".so" on.
func Library(module string) string {
	if strings.HasPrefix(module, "[") {
		return module // one of the kernel's, such as [vdso]
	}
	module = strings.TrimSuffix(module, " (deleted)")
	base := module[strings.LastIndexByte(module, '/')+1:]
	if i := strings.LastIndex(base, ".so"); i > 0 {
		if rest := base[i+len(".so"):]; rest == "" || rest[0] == '.' {
			return base[:i]
		}
	}
	return base
}

// beforeParameters returns the name of a function without its parameters.
func beforeParameters(function string) string {
	if i := strings.IndexByte(function, '('); i > 0 {
		return function[:i]
	}
	return function
}

// prefixed reports whether a text begins with one of the list.
func prefixed(text string, list []string) bool {
	for _, p := range list {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
