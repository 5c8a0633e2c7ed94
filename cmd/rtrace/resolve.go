package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// resolveCommand names the frames of a trace.
func resolveCommand() command {
	return command{
		name: "resolve",
		page: cli.Page{
			Summary:  "name the functions and source lines of the stacks of a trace",
			Synopsis: []string{"[flags] [FILE]", "[flags] -i FILE"},
			About: "Writes the trace with a text after the address of each frame. The text has the function and, if the files have debugging information, the source line " +
				"and the functions that are inlined there, the innermost first:\n\n" +
				"    read_all() at io.c:12 (inlined by) main() at main.c:40\n\n" +
				"Other texts are \"name() from /path\" if no line is known, \"from /path\" if no function is known, and \"in ??\" if nothing was mapped there. Everything " +
				"else in a text trace stays the same, byte for byte. Traces in other formats become text.\n\n" +
				"A file is used only if it is the one that was traced, as far as the trace shows. Traces of rtrace-bpf with their side file identify files by build ID, " +
				"others by the machine that a file is for. With build IDs, files are also found after they were moved or replaced: below --debug-dir, and with " +
				"--debuginfod on a server. docs/symbols.md has the details.",
			Examples: []cli.Example{
				{Does: "name the leaks, with lines", Command: "rtrace postproc -l rtrace-raw-4711-0 | rtrace resolve"},
				{Does: "do so on another machine, with a copy of the traced machine's files", Command: "rtrace resolve -r /mnt/target -o named.txt rtrace-raw-4711-0"},
				{Does: "get debugging information from a server", Command: "rtrace resolve --debuginfod=https://debuginfod.debian.net rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			var o resolveOptions
			in := f.group("Input and output")
			in.StringVarP(&o.inputFile, "input-file", "i", "", "read `FILE` (default: standard input, also with -)")
			in.StringVarP(&o.output, "output-file", "o", "", "write to the file `OUT`; - is standard output (the default)")
			in.VarP(groups.Word(&o.format, "text", namedFormats...), "format", "f", "write `FORMAT`: "+strings.Join(namedFormats, " or "))
			o.in.add(in)
			in.BoolVarP(&o.quiet, "quiet", "q", false, "print no warnings")
			what := f.group("What to print")
			what.VarP(groups.Word(&o.method, "bfd", "bfd", "elf"), "method", "t", "`METHOD` bfd: lines and inlined functions; elf: only functions, from symbols")
			what.BoolVarP(&o.fullPath, "full-path", "p", false, "print source files with their folders")
			what.BoolVarP(&o.keep, "keep-resolved", "k", false, "keep existing texts of frames (default: replace them if more is known)")
			o.symbols.add(f.group("Where files are"))
			other := f.group("Compatibility")
			other.VarP(groups.Word(&o.mode, "", "multi-pass", "single-cache"), "mode", "m", "no effect; accepted for sp-rtrace-resolve, where it saved memory: `MODE` multi-pass or single-cache")
			return o.run
		},
	}
}

// namedFormats are the formats that have a place for the texts of frames.
var namedFormats = []string{"text", "jsonl"}

type resolveOptions struct {
	inputFile, output, format string
	method, mode              string
	fullPath, keep, quiet     bool
	in                        inputFlags
	symbols                   symbolFlags
}

func (o *resolveOptions) run(ctx context.Context, s cli.Streams, args []string) (err error) {
	if err := o.symbols.check(); err != nil {
		return err
	}
	if o.inputFile != "" {
		args = append(args, o.inputFile)
	}
	name, err := oneFile(s, args)
	if err != nil {
		return err
	}
	out, err := create(s, o.output, name, textContent)
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	warnings := &warnings{w: s.Err, command: "resolve", quiet: o.quiet}
	defer warnings.close()
	settings, err := o.symbols.options(ctx, warnings.add)
	if err != nil {
		return err
	}
	settings.Style = resolve.Style{Lines: o.method == "bfd", FullPath: o.fullPath}
	x := &resolving{resolveOptions: o, ctx: ctx, streams: s, name: name, resolver: resolve.New(settings), warn: warnings.add}
	if out.file == nil && s.OutTerminal {
		out.Writer = printable.NewWriter(out.Writer)
	}
	defer func() { _ = x.resolver.Save() }() // without a cache, the next run is only slower
	return x.run(out)
}

// resolving is one run.
type resolving struct {
	*resolveOptions
	ctx      context.Context
	streams  cli.Streams
	name     string // of the input; empty: standard input
	resolver *resolve.Resolver
	warn     func(error)
	withSide *input // the records of a text that has a side file; nil for none
}

func (x *resolving) run(out io.Writer) error {
	if info, err := os.Stat(x.name); err != nil || !info.Mode().IsRegular() {
		return x.stream(out)
	}
	in, err := x.open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	if in.Format == "text" && x.format == "text" {
		if in.Side != "" {
			x.withSide = in
		}
		return x.textFile(out)
	}
	if lateMappings(in.Format) {
		observeMappings(x.ctx, x.resolver, x.name, decoder.Options{Strict: x.in.strict, NoSide: x.in.noSide})
	}
	return x.records(out, in, in)
}

func (x *resolving) open() (*input, error) {
	o := decoder.Options{Strict: x.in.strict, NoSide: x.in.noSide, Warn: x.warn}
	t, err := decoder.OpenFile(x.name, o)
	if err != nil {
		return nil, err
	}
	everyCall(t, "resolve")
	t.Reader = &untilDoneReader{ctx: x.ctx, r: t.Reader}
	return &input{Trace: t, name: x.name}, nil
}

// stream names the frames of an input that can be read once.
func (x *resolving) stream(out io.Writer) error {
	args := []string{x.name}
	if x.name == "" {
		args = nil
	}
	r, name, done, err := openBytes(x.ctx, x.streams, args)
	if err != nil {
		return err
	}
	defer done()
	raw, err := decoder.NewInput(r)
	if err != nil {
		return cut(name, err)
	}
	defer func() { _ = raw.Close() }() // only read
	if format, _ := raw.Format(); format == "text" && x.format == "text" {
		return cut(name, x.textStream(out, raw, name))
	}
	t, err := decoder.Open(raw, decoder.Options{Strict: x.in.strict, NoSide: true, Warn: x.warn})
	if cause := raw.Err(); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return cut(name, err)
	}
	everyCall(t, "resolve")
	in := &input{Trace: t, name: name}
	defer func() { _ = in.Close() }() // only read
	if t.Format != "sprtrace" {
		return x.records(out, in, t)
	}
	// Mappings come late in the original's traces.
	kept, err := spool.Create("")
	if err != nil {
		return err
	}
	defer func() { _ = kept.Close() }() // it has no name
	end := trace.Copy(&observer{kept, x.resolver}, t)
	if end != nil && !isSyntax(end) {
		return end
	}
	if cause := raw.Err(); end == nil && cause != nil {
		end = cause
	}
	again, err := kept.Reader()
	if err != nil {
		return err
	}
	return x.records(out, in, &endsWith{again, end})
}

// records writes the trace of src with the texts of its frames. in has its name and the
// skipped records.
func (x *resolving) records(out io.Writer, in *input, src trace.Reader) error {
	w, err := encoder.New(x.format, out, encoder.Options{KeepSeq: in.Format == "text"})
	if err != nil {
		return err
	}
	names := resolve.NewReader(src, x.resolver)
	names.Replace = !x.keep
	err = in.outcome(trace.Copy(w, names))
	if isIncomplete(err) {
		if e := w.Close(); e != nil {
			return e
		}
	}
	return err
}

// endsWith is a reader that ends with an error instead of io.EOF, unless it is nil.
type endsWith struct {
	trace.Reader
	err error
}

func (e *endsWith) ReadRecord(r *trace.Record) error {
	err := e.Reader.ReadRecord(r)
	if e.err != nil && errors.Is(err, io.EOF) {
		return e.err
	}
	return err
}

// observer is a writer that shows mappings to a resolver.
type observer struct {
	trace.Writer
	resolver *resolve.Resolver
}

func (o *observer) WriteRecord(r *trace.Record) error {
	if r.Kind == trace.KindMapping || r.Kind == trace.KindFunction {
		o.resolver.Observe(r)
	}
	return o.Writer.WriteRecord(r)
}
