package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/internal/wrapper"
	"rtrace-bpf/trace"
)

// nameFlags select how frames get their names, and which of them are left out.
type nameFlags struct {
	any      bool // use files that the trace does not identify, too
	none     bool // use only names in the trace
	lines    bool
	mangled  bool
	skip     []string
	wrappers bool // show them
	base     bool // leave out the folders of source files
	symbols  symbolFlags
	flags    *pflag.FlagSet

	list *wrapper.List // after check
}

// errNoNames is the error of files while names come only from the trace.
var errNoNames = errors.New("no names were requested")

func (n *nameFlags) add(f *pflag.FlagSet) {
	n.addSource(f)
	f.BoolVar(&n.lines, "lines", true, "show source lines and inlined functions, from debugging information")
	f.BoolVar(&n.mangled, "no-demangle", false, "print mangled names of callers")
	f.StringArrayVar(&n.skip, "skip", nil, "leave out frames at the beginning of a stack whose function or file matches the regular expression `REGEX`; may be repeated")
	f.BoolVar(&n.wrappers, "show-wrappers", false, "begin stacks with the function that called the allocator, also if it is one of the known wrappers such as operator new or xmalloc")
	n.symbols.addPlaces(f, "")
}

// addSource adds only the flags that select where names come from.
func (n *nameFlags) addSource(f *pflag.FlagSet) {
	n.flags = f
	f.BoolVar(&n.none, "no-resolve", false, "use only names that are in the trace")
	f.BoolVarP(&n.any, "resolve", "r", false, "also name functions from files that the trace does not identify by build ID, and from /tmp/perf-PID.map (default: only from files that are certain to be the traced ones)")
}

// wanted reports whether names from files are requested.
func (n *nameFlags) wanted() bool {
	return !n.none && (n.any || n.flags == nil || !n.flags.Changed("resolve"))
}

// check checks the flags.
func (n *nameFlags) check() error {
	if n.none && n.any {
		return cli.Usagef("--resolve and --no-resolve exclude each other")
	}
	if n.wrappers && len(n.skip) > 0 {
		return cli.Usagef("--skip and --show-wrappers exclude each other")
	}
	n.list = wrapper.None
	if !n.wrappers {
		var err error
		if n.list, err = wrapper.New(n.skip); err != nil {
			return cli.Usagef("--skip: %w", err)
		}
	}
	return n.symbols.check()
}

// open returns a resolver. warn gets a warning about servers that fail.
func (n *nameFlags) open(ctx context.Context, warn func(error)) (*resolve.Resolver, error) {
	if !n.wanted() {
		return resolve.New(resolve.Options{Open: func(trace.Module) (*symbol.File, error) { return nil, errNoNames }}), nil
	}
	o, err := n.symbols.options(ctx, warn)
	if err != nil {
		return nil, err
	}
	o.Style = resolve.Style{Lines: n.lines, FullPath: !n.base}
	o.Identified = !n.any
	if o.Identified && n.symbols.perfMap == "" {
		o.PerfMap = func(int32) (string, func(fs.FileInfo) bool) { return "", nil }
	}
	o.Warn = nil // hints follow
	return resolve.New(o), nil
}

// framer makes frames of stacks; r knows the mappings.
func (n *nameFlags) framer(r *resolve.Resolver) sites.Framer {
	f := sites.Framer{
		Name:     func(pid int32, addr uint64) string { return r.Process(pid).Text(addr) },
		Module:   func(pid int32, addr uint64) string { return r.Process(pid).Module(addr) },
		Position: func(pid int32, addr uint64) string { return r.Process(pid).Position(addr) },
		Wrappers: n.list, Inlined: n.lines,
	}
	if !n.mangled {
		f.Source = func(name string) string {
			text, _ := symbol.Source(name)
			return text
		}
	}
	return f
}

// introducer passes records on, and those about the trace and its process also to a resolver.
type introducer struct {
	trace.Reader
	to *resolve.Resolver
}

// ReadRecord implements trace.Reader.
func (x *introducer) ReadRecord(r *trace.Record) error {
	err := x.Reader.ReadRecord(r)
	if err == nil && (r.Kind == trace.KindHeader || r.Kind == trace.KindProcess) {
		x.to.Observe(r)
	}
	return err
}
