package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/analysis/pagemap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/report/pageview"
	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// pagemapCommand prints areas of memory page by page, like sp-rtrace-pagemap.
func pagemapCommand() command {
	return command{
		name: "pagemap",
		page: cli.Page{
			Summary:  "print the writable memory of a process page by page, like sp-rtrace-pagemap",
			Synopsis: []string{"-p|-d|-c [-s] [flags] [FILE]", "-N NAME|-A ADDRESS|-P TYPES [flags] [FILE]"},
			About: "Prints a map of each writable area of the process, a character per page: the kind of memory, how much of it is allocated, or how many times it is " +
				"mapped. The kernel's data about areas and pages come from two files, maps and pageflags, which the pagemap module of sp-rtrace attaches to a trace " +
				"when tracing stops. They must be next to the trace.\n\n" +
				"-d, -T and -B use the blocks that are live at the end of the trace, because the pages are from that moment. -d needs no pageflags. For areas above 4 " +
				"GiB, -d leaves out repeated lines.\n\n" +
				"With a filter and without a map, it prints the trace like rtrace postproc, with the calls for blocks in the selected areas. With a map, -N and -A " +
				"select the areas of the map.",
			Examples: []cli.Example{
				{Does: "show how full each page is, and the first and last blocks of each area", Command: "rtrace pagemap -d -T 3 -B 3 trace.rtrace"},
				{Does: "show the kind of memory in the heap", Command: "rtrace pagemap -p -s -N heap trace.rtrace"},
				{Does: "print the leaks in the heap", Command: "rtrace postproc -l trace.rtrace >trace.txt && rtrace pagemap -N heap trace.txt"},
			},
		},
		setup: func(f *flags) runFunc {
			var o pagemapOptions
			o.declare(f)
			return o.run
		},
	}
}

type pagemapOptions struct {
	input, output         string
	types, density, count bool
	summary, legacy       bool
	top, bottom           int
	name, address, pages  string
	helpFilter, helpPages bool
	quiet                 bool
}

func (o *pagemapOptions) declare(f *flags) {
	in := f.group("Input and output")
	in.StringVarP(&o.input, "input-file", "i", "", "read `FILE` (default: standard input, also with -)")
	in.StringVarP(&o.output, "output-file", "o", "", "write to the file `OUT`; - is standard output (the default)")
	in.BoolVarP(&o.quiet, "quiet", "q", false, "print no warnings")
	what := f.group("Maps")
	what.BoolVarP(&o.types, "pages", "p", false, "print the kind of memory of each page, with counts")
	what.BoolVarP(&o.density, "density", "d", false, "print how much of each page is allocated")
	what.BoolVarP(&o.count, "count", "c", false, "print how many times each page is mapped")
	what.BoolVarP(&o.summary, "summary", "s", false, "print at the end how many pages have which flags")
	what.VarP(groups.Number(&o.top, 0, 0, groups.Unbounded), "top", "T", "also print the `N` highest allocations of each area")
	what.VarP(groups.Number(&o.bottom, 0, 0, groups.Unbounded), "bottom", "B", "also print the `N` lowest allocations of each area")
	what.BoolVar(&o.legacy, "legacy", false, "use all allocations of the trace, and print filtered ones with the same bytes as the original")
	which := f.group("Filters")
	which.StringVarP(&o.name, "filter-name", "N", "", "only areas whose path contains `NAME`")
	which.StringVarP(&o.address, "filter-address", "A", "", "only the area that contains `ADDRESS` (hexadecimal); -N takes precedence")
	which.StringVarP(&o.pages, "filter-page", "P", "", "only calls for blocks that begin in a page with one of the flags in `TYPES`; see --help-pages")
	help := f.group("More help")
	help.BoolVar(&o.helpFilter, "help-filter", false, "print what the filters do")
	help.BoolVar(&o.helpPages, "help-pages", false, "print the flags of pages")

	// Other names in programs, manual pages and versions of the original.
	also := f.Hidden()
	also.StringVar(&o.input, "in", "", "")
	also.StringVar(&o.output, "out", "", "")
	also.Var(groups.Number(&o.top, 0, 0, groups.Unbounded), "highest", "")
	also.Var(groups.Number(&o.bottom, 0, 0, groups.Unbounded), "lowest", "")
	also.Var(groups.Number(&o.bottom, 0, 0, groups.Unbounded), "botton", "")
}

// kind returns the requested map.
func (o *pagemapOptions) kind() (pageview.Map, error) {
	kind, n := pageview.None, 0
	for _, k := range []struct {
		asked bool
		kind  pageview.Map
	}{{o.types, pageview.Types}, {o.density, pageview.Density}, {o.count, pageview.Counts}} {
		if k.asked {
			kind = k.kind
			n++
		}
	}
	if n > 1 {
		return 0, cli.Usagef("one map at a time: -p, -d or -c")
	}
	return kind, nil
}

// areaFilter is the filter of -N and -A.
type areaFilter struct {
	name    string
	address uint64
	some    bool
}

// keeps reports whether an area is selected.
func (f *areaFilter) keeps(a *pagemap.Area) bool {
	switch {
	case !f.some:
		return true
	case f.name != "":
		return strings.Contains(a.Path, f.name)
	}
	return a.Start <= f.address && f.address < a.End
}

func (o *pagemapOptions) areas() (f areaFilter, err error) {
	f.name, f.some = o.name, o.name != "" || o.address != ""
	if o.address != "" {
		digits := strings.TrimPrefix(strings.ToLower(o.address), "0x")
		if f.address, err = strconv.ParseUint(digits, 16, 64); err != nil {
			return f, cli.Usagef("--filter-address %q: not an address; write one as 0x55d0c4a00000", o.address)
		}
	}
	return f, nil
}

func (o *pagemapOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	switch {
	case o.helpFilter:
		return o.explainFilters(s.Out)
	case o.helpPages:
		return explainPages(s.Out)
	}
	kind, err := o.kind()
	if err != nil {
		return err
	}
	areas, err := o.areas()
	if err != nil {
		return err
	}
	mask, unknown := pagemap.Mask(o.pages)
	report := kind != pageview.None || o.summary
	switch {
	case unknown != "":
		return cli.WithHint(cli.Usagef("--filter-page %q: not a type of page", unknown), "rtrace pagemap --help-pages lists them")
	case report && mask != 0:
		return cli.Usagef("--filter-page is for printing the trace, not for maps")
	case !report && mask == 0 && !areas.some:
		return cli.Usagef("nothing to print is selected: use -p, -d or -c for a map, -s for a summary, or -N, -A or -P for the trace")
	case kind == pageview.None && (o.top > 0 || o.bottom > 0):
		return cli.Usagef("--top and --bottom need a map: -p, -d or -c")
	}
	if o.input != "" {
		args = append(args, o.input)
	}
	name, err := oneFile(s, args)
	if err != nil {
		return err
	}
	p := newPostprocess(ctx, s, &postprocOptions{output: o.output, format: "text", depth: -1, quiet: o.quiet}, name)
	p.command = "pagemap"
	if report {
		return errors.Join(o.report(p, kind, areas), p.in.close())
	}
	p.legacy, p.in.legacy = o.legacy, o.legacy
	return o.filter(p, areas, mask)
}

// check warns if no area is selected: otherwise an empty map or trace looks as if nothing
// was allocated.
func (f *areaFilter) check(p *postprocess, areas []pagemap.Area) {
	if slices.ContainsFunc(areas, func(a pagemap.Area) bool { return f.keeps(&a) }) {
		return
	}
	what := fmt.Sprintf("%#x is in no writable area", f.address)
	if f.name != "" {
		what = fmt.Sprintf("no writable area has a path with %q", printable.Name(f.name))
	}
	p.warning(errors.New(what + "; -p -s prints all areas"))
}

// filter prints the trace with the calls for blocks in the selected areas and pages. The
// original prints no frees.
func (o *pagemapOptions) filter(p *postprocess, which areaFilter, mask uint64) error {
	var files attachments
	defer files.close()
	p.prepare = func(env *environment) error {
		if err := files.open(p, env, mask != 0); err != nil {
			return err
		}
		which.check(p, files.areas)
		if mask != 0 && !strings.Contains(env.header.Filter, wire.FilterLeaks) {
			p.warning(errors.New("the pages are from the end of the trace, but the trace has calls for blocks that were freed; rtrace postproc -l leaves them out"))
		}
		find := pagemap.NewFind(files.areas)
		p.chosen.Keep = func(c *trace.Call) bool {
			i := find(c.ID)
			if i < 0 || !which.keeps(&files.areas[i]) || o.legacy && c.Op != trace.OpAlloc {
				return false
			}
			return mask == 0 || files.has(i, c.ID, mask)
		}
		return nil
	}
	return errors.Join(p.run(), files.err)
}

// report prints a map or a summary.
func (o *pagemapOptions) report(p *postprocess, kind pageview.Map, which areaFilter) (err error) {
	p.in.skim = true
	t, err := p.in.open(true)
	if err != nil {
		return err
	}
	env, ending := p.look(t)
	p.in.skim = false
	if !isSyntax(ending) {
		return ending
	}
	var files attachments
	defer files.close()
	if err := files.open(p, env, kind != pageview.Density || o.summary); err != nil {
		return err
	}
	r := pageview.Report{
		PID: env.pid(), Map: kind, Summary: o.summary, Pages: files.pages, PageSize: files.pageSize(),
		Lowest: o.bottom, Highest: o.top,
	}
	if len(env.processes) > 0 {
		r.Process = printable.Name(env.processes[len(env.processes)-1].Process.Name)
	}
	which.check(p, files.areas)
	for _, a := range files.areas {
		if which.keeps(&a) {
			r.Areas = append(r.Areas, a)
		}
	}
	if kind == pageview.Density || o.top > 0 || o.bottom > 0 {
		if r.Blocks, err = o.blocks(p, env, r.Areas, kind); err != nil {
			return err
		}
		r.Call = callPrinter(env, r.Blocks)
	}
	out, err := create(p.streams, o.output, p.in.path, textContent)
	if err != nil {
		return err
	}
	return out.finish(o.write(p, out, &r, ending))
}

func (o *pagemapOptions) write(p *postprocess, w io.Writer, r *pageview.Report, ending error) error {
	lacking, err := r.Write(w)
	if err != nil {
		return err
	}
	if ending != nil {
		return cut(p.in.name(), ending)
	}
	if lacking > 0 && (r.Map != pageview.Density || r.Summary) {
		return cli.Incompletef("%s: the attachment %q lacks %d of the areas", p.in.name(), "pageflags", lacking)
	}
	return nil
}

// blocks reads the allocations in some areas: those that are live at the end, and with
// --legacy all.
func (o *pagemapOptions) blocks(p *postprocess, env *environment, areas []pagemap.Area, kind pageview.Map) (*pagemap.Blocks, error) {
	blocks := pagemap.NewBlocks(areas)
	blocks.Sizes, blocks.Top, blocks.Bottom = kind == pageview.Density, o.top, o.bottom
	t, err := p.in.again()
	if err != nil {
		return nil, err
	}
	var src trace.Reader = t
	switch leaks := strings.Contains(env.header.Filter, wire.FilterLeaks); {
	case !leaks && o.legacy:
		p.warning(errors.New("the trace has blocks that were freed; rtrace postproc -l leaves them out"))
	case !leaks:
		src = filter.NewLeaks(t)
	}
	err = each(&untilDoneReader{ctx: p.ctx, r: src}, blocks.Add)
	if !isSyntax(err) {
		return nil, err
	}
	return blocks, nil
}

// callPrinter prints calls as the text of a trace, indented.
func callPrinter(env *environment, blocks *pagemap.Blocks) func(w io.Writer, prefix string, area, n int, highest bool) error {
	var (
		buf     bytes.Buffer
		text, _ = sptext.New(&buf, sptext.Options{KeepSeq: true}) // no error with a buffer
		header  = trace.Record{Kind: trace.KindHeader, Header: env.header}
		err     = text.WriteRecord(&header)
	)
	// The encoder writes the header line only with the process.
	err = errors.Join(err, text.WriteRecord(&trace.Record{Kind: trace.KindProcess}), text.Flush())
	return func(w io.Writer, prefix string, area, n int, highest bool) error {
		calls := blocks.Lowest
		if highest {
			calls = blocks.Highest
		}
		buf.Reset()
		r := *calls(area)[n]
		r.Call.Args = nil
		if err = errors.Join(err, text.WriteRecord(&r), text.Flush()); err != nil {
			return err
		}
		for line := range strings.Lines(printable.Text(buf.String())) {
			if line != "\n" {
				line = prefix + line
			}
			if _, err := io.WriteString(w, line); err != nil {
				return fmt.Errorf("writing the map: %w", err)
			}
		}
		return nil
	}
}
