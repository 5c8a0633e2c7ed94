package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/gnuplot"
	"rtrace-bpf/internal/report/usageview"
	"rtrace-bpf/trace"
)

// reportFlags are the flags of the reports of sp-rtrace-timeline.
type reportFlags struct {
	wanted                [len(consumption.Reports)]bool
	slice, logBase        string
	scale, scaleX, scaleY int
	svg, eps, window      bool
	data, working         string
	legacy                bool
	filters               filterFlags

	reportChoice
}

// reportChoice is what the flags of the reports mean.
type reportChoice struct {
	reports                 consumption.Report
	sliceLength             int64 // in nanoseconds or calls; 0 for the usual one
	base                    float64
	chosen                  consumption.Filter
	byCall, resourceChanged bool
}

// add declares the flags; hidden gets those that are other names, or that have no effect. It
// returns the flags that are only for the reports.
func (o *reportFlags) add(f *flags, v *viewFlags) *pflag.FlagSet {
	what := f.group("Reports of sp-rtrace-timeline")
	for i, x := range []struct{ name, short, text string }{
		{"totals", "t", "memory that is allocated and not freed, and the number of allocations"},
		{"activity", "a", "memory that is allocated and freed in each slice of time"},
		{"lifetime", "l", "when each block was allocated and freed"},
		{"histogram-count", "c", "how many blocks there are of each size"},
		{"histogram-size", "s", "how many bytes the blocks of each size have"},
	} {
		what.BoolVarP(&o.wanted[i], x.name, x.short, false, x.text)
	}
	what.BoolVarP(&o.svg, "svg", "g", false, "draw pictures, even without -o; the same as -f svg")
	what.StringVarP(&o.slice, "slice", "S", "", "with -a: a slice has `MS` milliseconds (default: a twentieth of the time)")
	what.StringVarP(&o.logBase, "logscale-size", "L", "10", "with -l: `BASE` of the logarithmic axis of sizes; with 1 or less the axis is linear")
	what.Var(groups.Number(&o.scale, 100, 10, 1000), "scale", "size of the pictures in `PERCENT`")
	what.Var(groups.Number(&o.scaleX, 100, 10, 1000), "scalex", "width of the pictures in `PERCENT`")
	what.Var(groups.Number(&o.scaleY, 100, 10, 1000), "scaley", "height of the pictures in `PERCENT`")
	what.StringVar(&o.data, "data", "", "write the numbers of the pictures to files for gnuplot in the new folder `DIR`")
	what.BoolVar(&o.legacy, "legacy", false, "count like sp-rtrace-timeline, including its errors")
	filters := f.group("Filters of these reports")
	o.filters.add(filters)
	hidden := f.Hidden()
	hidden.StringVar(&v.output, "out", "", "")
	hidden.StringVarP(&o.working, "working-dir", "W", "", "")
	hidden.BoolVarP(&o.eps, "eps", "e", false, "")
	hidden.BoolVarP(&o.window, "wxt", "w", false, "")
	own := pflag.NewFlagSet("reports", pflag.ContinueOnError)
	own.AddFlagSet(what)
	own.AddFlagSet(filters)
	own.AddFlag(hidden.Lookup("eps"))
	own.AddFlag(hidden.Lookup("wxt"))
	return own
}

// parse determines the requested reports, and whether a flag is set that is only for them.
func (o *reportFlags) parse(own *pflag.FlagSet) (alone string) {
	for i, wanted := range o.wanted {
		if wanted {
			o.reports |= consumption.Reports[i]
		}
	}
	own.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			alone = f.Name
		}
	})
	return alone
}

// checkReports checks the flags of the reports.
func (o *timelineOptions) checkReports() error {
	r := &o.report
	switch {
	case r.eps:
		return cli.WithHint(cli.Usagef("there is no EPS output"), "write SVG with -g; inkscape and rsvg-convert convert it to EPS")
	case r.window:
		return cli.WithHint(cli.Usagef("there is no window"), "write SVG with -g -o OUT.svg and open it in a browser")
	case o.lifetimes || o.by != "" || o.points != 0 || o.csv || o.top != 0:
		return cli.Usagef("--lifetimes, --by, --top, --points and --csv are not for -t, -a, -l, -c and -s")
	case r.legacy && o.x == "event":
		return cli.Usagef("--legacy has no axis of events")
	}
	r.byCall = o.x == "event"
	several := r.reports&(r.reports-1) != 0
	if r.svg {
		if o.format != "" && o.format != "svg" {
			return cli.Usagef("-g and -f %s exclude each other", o.format)
		}
		o.format = "svg"
	}
	if o.format == "" {
		o.format = "svg"
		if suffix := o.suffix(); suffix == "txt" || o.output == "" || o.output == "-" {
			o.format = "text"
		}
	}
	switch {
	case o.format != "text" && o.format != "svg":
		return cli.Usagef("--format %s: reports are text or svg; --data writes their numbers", o.format)
	case o.format == "svg" && several && (o.output == "" || o.output == "-"):
		return cli.Usagef("several pictures need -o OUT, for OUT-totals.svg and so on")
	}
	var err error
	if r.chosen, err = r.filters.filter(); err != nil {
		return err
	}
	if r.chosen.Resource == "" && r.resourceChanged {
		r.chosen.Resource = o.blocks.resource
	}
	if r.sliceLength, err = parseSlice(r.slice, r.byCall); err != nil {
		return err
	}
	if r.base, err = strconv.ParseFloat(r.logBase, 64); err != nil || math.IsNaN(r.base) || math.IsInf(r.base, 0) {
		return cli.Usagef("--logscale-size %q: not a number; write one such as 10", r.logBase)
	}
	if r.base > 1 && r.base < 1.01 {
		return cli.Usagef("--logscale-size %s: the number is too small for a base; write one from 1.01 on", r.logBase)
	}
	o.width = o.width * r.scale / 100 * r.scaleX / 100
	if o.width < leastWidth || o.width > mostWidth {
		return cli.Usagef("--scale %d, --scalex %d: the picture would be %d pixels wide; %d to %d can be drawn", r.scale, r.scaleX, o.width, leastWidth, mostWidth)
	}
	return nil
}

// parseSlice parses milliseconds, or a number of calls.
func parseSlice(text string, calls bool) (int64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	unit, most := 1e6, float64(math.MaxInt64)/4
	if calls {
		unit = 1
	}
	if err != nil || !(v*unit >= 1) || v*unit > most {
		return 0, cli.Usagef("--slice takes milliseconds above 0, not %q", text)
	}
	return int64(v * unit), nil
}

// outputs are the outputs of the reports.
type outputs struct {
	reports []consumption.Report
	files   []*output
	data    *folder
}

// finish keeps the outputs if err leaves something worth keeping.
func (x *outputs) finish(err error) error {
	for _, f := range x.files {
		err = f.finish(err)
	}
	if x.data != nil {
		err = x.data.finish(err)
	}
	return err
}

// create opens all outputs.
func (o *timelineOptions) createReports(s cli.Streams, input string) (*outputs, error) {
	x := new(outputs)
	holds := textContent
	if o.format == "svg" {
		holds = svgContent
	}
	several := o.report.reports&(o.report.reports-1) != 0
	for _, r := range consumption.Reports {
		if !o.report.reports.Has(r) {
			continue
		}
		name := o.output
		if several && o.format == "svg" {
			name = strings.TrimSuffix(name, ".svg") + "-" + r.String() + ".svg"
		}
		x.reports = append(x.reports, r)
		if len(x.files) > 0 && o.format == "text" {
			continue // all in one
		}
		f, err := create(s, name, input, holds)
		if err != nil {
			return nil, x.finish(err)
		}
		x.files = append(x.files, f)
	}
	if o.report.data != "" {
		var err error
		if x.data, err = createFolder(o.report.data); err != nil {
			return nil, x.finish(err)
		}
	}
	return x, nil
}

// runReports reads the trace and writes the reports.
func (o *timelineOptions) runReports(ctx context.Context, s cli.Streams, args []string) (err error) {
	if err := o.checkReports(); err != nil {
		return err
	}
	in, err := o.blocks.in.openTwice(ctx, s, "timeline", args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	out, err := o.createReports(s, in.path)
	if err != nil {
		return err
	}
	store := gnuplot.New(gnuplot.Options{Calls: o.report.byCall, Legacy: o.report.legacy})
	defer func() { err = errors.Join(err, store.Close()) }()
	defer func() { err = out.finish(err) }()
	var sink consumption.Sink
	if out.data != nil {
		sink = store
	}
	u, name, err := o.count(in, s, sink)
	if !isIncomplete(err) {
		return err
	}
	return errors.Join(err, o.writeReports(out, u, name, store))
}

// count reads the trace, twice. With an error that leaves a result (see isIncomplete) it
// returns that as well, and the name of the program.
func (o *timelineOptions) count(in *twice, s cli.Streams, sink consumption.Sink) (u *consumption.Usage, name string, err error) {
	r := &o.report
	scan := consumption.NewScan(r.chosen, r.legacy, r.byCall)
	err = in.read(o.process, func(src *processReader, records trace.Reader) error {
		e := each(records, scan.Add)
		name = src.name(in.name)
		if !isSyntax(e) {
			return e
		}
		return cmp.Or(src.check(warner(s.Err, "timeline")), e)
	})
	if !isIncomplete(err) {
		return nil, name, err
	}
	if e := scan.Check(r.reports); e != nil {
		return nil, name, o.unfit(e)
	}
	if e := scan.Doubts(); e != nil {
		warner(s.Err, "timeline")(e)
	}
	u, e := consumption.New(scan, consumption.Options{Reports: r.reports, Filter: r.chosen, Slice: r.sliceLength, Legacy: r.legacy, Sink: sink})
	if e != nil {
		return nil, name, cli.WithHint(e, "name a longer one with -S")
	}
	err = in.read(o.process, func(_ *processReader, records trace.Reader) error { return each(records, u.Add) })
	if !isIncomplete(err) {
		return nil, name, err
	}
	u.Finish()
	if r.legacy && r.reports&(consumption.Count|consumption.Size) != 0 && len(u.Kinds()) > 1 {
		return nil, name, cli.WithHint(errors.New("sp-rtrace-timeline makes no histograms for several types of resources"), "choose one with --filter-resource")
	}
	return u, name, err
}

// unfit returns what to do about a trace that is not fit for the reports.
func (o *timelineOptions) unfit(err error) error {
	switch {
	case errors.Is(err, consumption.ErrTimes) && o.report.legacy:
		return errors.New("the trace has calls without a time, at which sp-rtrace-timeline gives up -t, -a and -l")
	case errors.Is(err, consumption.ErrTimes):
		return cli.WithHint(fmt.Errorf("%w, which -t, -a, -l and --filter-time need", err), "-c and -s do not; with -x event the axis is the number of the call")
	case errors.Is(err, consumption.ErrResource):
		return &cli.UsageError{Err: err}
	}
	return err
}

// writeReports writes all outputs.
func (o *timelineOptions) writeReports(out *outputs, u *consumption.Usage, name string, store *gnuplot.Store) error {
	view := usageview.Options{
		Name: name, Filters: o.report.filters.words(), Width: o.width,
		Height: o.report.scale * o.report.scaleY / 100, LogBase: o.report.base,
	}
	for i, r := range out.reports {
		f := out.files[min(i, len(out.files)-1)]
		w := bufio.NewWriter(f)
		var err error
		switch {
		case o.format == "svg":
			err = usageview.WriteSVG(w, u, r, view)
		default:
			if i > 0 {
				_, err = io.WriteString(w, "\n")
			}
			err = errors.Join(err, o.reportText(w, u, r))
		}
		if err = errors.Join(err, w.Flush()); err != nil {
			return err
		}
	}
	if out.data == nil {
		return nil
	}
	if err := store.Err(); err != nil {
		return fmt.Errorf("writing the series to %s: %w", o.report.data, err)
	}
	for n := range store.Len() {
		if err := out.data.write(store.Name(n), func(w io.Writer) error { return store.Write(w, n) }); err != nil {
			return err
		}
	}
	return nil
}

// reportText writes a report as text.
func (o *timelineOptions) reportText(w io.Writer, u *consumption.Usage, r consumption.Report) error {
	title := usageview.Title(u, r)
	if words := o.report.filters.words(); words != "" {
		title += " (" + words + ")"
	}
	parts := []io.WriterTo{note(sites.Printable(title)), usageview.Table(u, r)}
	if r == consumption.Count || r == consumption.Size {
		for _, k := range u.Kinds() {
			if len(u.Kinds()) > 1 {
				parts = append(parts, note(sites.Printable(k.Type)))
			}
			parts = append(parts, usageview.Sizes(k, r))
		}
	}
	return printAll(w, parts...)
}
