package main

import (
	"context"
	"errors"
	"fmt"

	"rtrace-bpf/cmd/internal/postproc"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/trace"
)

// postprocCommand prints a trace like sp-rtrace-postproc.
func postprocCommand() command {
	return command{
		name: "postproc",
		page: cli.Page{
			Summary:  "print a trace, or its leaks, like sp-rtrace-postproc",
			Synopsis: []string{"[flags] [FILE]", "[flags] -i FILE"},
			About: "Prints the mappings and declarations of a trace, and then its calls with their stacks, one after the other. With -l, it prints only allocations that " +
				"nothing frees, followed by a summary for each kind of resource. With -c, calls with the same stack are grouped before it, with their number and the " +
				"sum of their sizes.\n\n" +
				"The filters are applied in this order, whatever the order of the flags: -b, -R, --call-address, --include, --exclude, -C, -l, -c. Calls keep their " +
				"numbers in the trace. A block is not a leak if any call frees it, whether that call is selected or not; with --legacy only a selected call counts, as " +
				"in the original.\n\n" +
				"The output is a trace again: rtrace postproc and the tools of sp-rtrace can read it. A trace from a pipe is copied to a temporary file unless you give " +
				"-l or -c. With -l, memory use grows with the number of live blocks; -c uses about 15 bytes for each remaining call.",
			Examples: []cli.Example{
				{Does: "print the leaks, with function names", Command: "rtrace postproc -l -r rtrace-raw-4711-0"},
				{Does: "do the same in two steps", Command: "rtrace postproc -l rtrace-raw-4711-0 | rtrace postproc -r"},
				{Does: "print leaks by stack, the largest first", Command: "rtrace postproc -l -c -s size -r rtrace-raw-4711-0"},
				{Does: "print the calls of the first and the third kind of resource", Command: "rtrace postproc -R 5 rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			var given postproc.Options
			given.Declare(&f.Groups)
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return optionsOf(&given).run(ctx, s, args)
			}
		},
	}
}

type postprocOptions struct {
	input, output   string
	format, sort    string
	leaks, compress bool
	resolve, noArgs bool
	depth           int
	legacy, quiet   bool
	filters         callFilters
}

// optionsOf returns the parsed command line.
func optionsOf(given *postproc.Options) *postprocOptions {
	return &postprocOptions{
		input: given.Input, output: given.Output, format: given.Format, sort: given.Sort,
		leaks: given.Leaks, compress: given.Compress, resolve: given.Resolve, noArgs: given.NoArgs,
		depth: given.Depth, legacy: given.Legacy, quiet: given.Quiet, filters: callFilters(given.Filters),
	}
}

// check checks the flags.
func (o *postprocOptions) check() error {
	if o.sort == "" {
		o.sort = "size-asc"
	} else if !o.compress {
		return cli.Usagef("--sort needs --compress")
	}
	if o.format == "text" {
		return nil
	}
	switch {
	case o.compress:
		return cli.Usagef("--compress is for text: the binary format has no place for groups of calls")
	case o.legacy:
		return cli.Usagef("--legacy is for text: the original writes nothing else")
	}
	return nil
}

func (o *postprocOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.input != "" {
		args = append(args, o.input)
	}
	name, err := oneFile(s, args)
	if err != nil {
		return err
	}
	p := newPostprocess(ctx, s, o, name)
	if p.chosen, err = o.filters.selection(p.warning); err != nil {
		return err
	}
	if o.filters.Address != "" {
		p.prepare = p.address
	}
	return p.run()
}

// postprocess is one run.
type postprocess struct {
	*postprocOptions
	command string // for warnings
	ctx     context.Context
	streams cli.Streams
	in      postprocInput
	env     environment
	chosen  *filter.Selection
	front   *filter.Select // the environment with the declarations, if calls are selected later
	ending  error          // the end of the input, if that is not io.EOF
	end     *trace.Record  // the input has one, to be written last

	// prepare, if not nil, completes chosen with the environment of the trace, before the
	// calls are read.
	prepare func(*environment) error

	comments placedComments // legacy: of a text
}

func newPostprocess(ctx context.Context, s cli.Streams, o *postprocOptions, name string) *postprocess {
	p := &postprocess{
		postprocOptions: o, command: "postproc", ctx: ctx, streams: s, chosen: new(filter.Selection),
		in: postprocInput{ctx: ctx, path: name, stdin: s.In, legacy: o.legacy},
	}
	p.in.warn = p.warn
	return p
}

// run runs the command.
func (p *postprocess) run() error {
	p.chosen.NoArgs = p.noArgs && !p.legacy
	if p.depth >= 0 {
		p.chosen.Shallow, p.chosen.Depth = true, p.depth
		// The original groups calls before it cuts their stacks.
		p.chosen.Whole = p.legacy && p.compress
	}
	err := p.print()
	return errors.Join(err, p.in.close())
}

// warning prints a warning of our own.
func (p *postprocess) warning(err error) {
	if !p.quiet {
		warner(p.streams.Err, p.command)(err)
	}
}

// warn prints a warning; in legacy mode it is one of the original.
func (p *postprocess) warn(text string) {
	switch {
	case p.quiet:
	case p.legacy:
		fmt.Fprint(p.streams.Err, text)
	default:
		warner(p.streams.Err, p.command)(errors.New(text))
	}
}
