package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/heapview"
	"rtrace-bpf/trace"
)

// heapmapCommand draws the address space.
func heapmapCommand() command {
	return command{
		name: "heapmap",
		page: cli.Page{
			Summary:  "draw a map of the allocated memory of a program",
			Synopsis: []string{"[flags] -o OUT [FILE]"},
			About: "Draws the address space in rows from left to right, like the window of mpatrol's mptrace: memory that is allocated, memory that was freed, and memory " +
				"that the allocator got from the system without a known block. Distant parts of the address space become regions of their own. A block that is only " +
				"partly in a region is drawn with that part. A picture begins with the region that has most live bytes, prints how fragmented the free memory of each " +
				"region is, and adds up the regions that it does not draw.\n\n" +
				"SVG is a picture of one moment, which --at selects. HTML is a page that needs no other file and no network: a slider moves through the trace, the map " +
				"zooms from the whole to single bytes, and each block shows its address, size, thread and call site.\n\n" +
				"A moment is an event: the calls of a trace are numbered from 1, whatever they did. If the process executed another program, the map is of the last " +
				"one.\n\n" +
				"Memory use grows with the number of live blocks, plus 40 bytes for each of up to half a million others. For longer traces, it leaves out blocks that " +
				"lived only between two steps of the slider. The states at the steps, at the peak, at the event of --at and at the end are exact. A page is kept below " +
				"5 MB in the same way.",
			Examples: []cli.Example{
				{Does: "draw the memory at the peak", Command: "rtrace heapmap --at peak -o peak.svg rtrace-raw-4711-0"},
				{Does: "write a page with a time slider", Command: "rtrace heapmap -r -o map.html rtrace-raw-4711-0"},
				{Does: "draw 64 KiB in detail", Command: "rtrace heapmap --base 0x55d0c4a00000 --space 64K -o part.svg rtrace-raw-4711-0"},
			},
		},
		setup: func(f *flags) runFunc {
			var o heapmapOptions
			o.addOutput(f.group("Output"), "svg or html (default: by the suffix of OUT, otherwise svg)", "svg", "html")
			what := f.group("What to draw")
			what.StringVar(&o.at, "at", "end", "draw the moment after `EVENT`: a number, peak (most live bytes) or end; a page begins there")
			what.Var(&o.base, "base", "draw memory from `ADDRESS` on; a page begins there")
			what.Var(&o.space, "space", "with --base: draw `BYTES`, such as 4096, 64K or 8M (default: up to the end of the region)")
			what.Var(groups.Number(&o.regions, 0, 0, groups.Unbounded), "regions", "draw at most `N` regions, those with most memory (default: 16 in a picture, without those that have less than 1 % of it, and 256 in a page)")
			o.addWhat(what)
			o.blocks.in.add(f.group("Input"))
			return o.run
		},
	}
}

type heapmapOptions struct {
	viewFlags
	at      string
	base    address
	space   groups.Size
	regions int
	chosen  bool // regions is set on the command line
}

// smallRegion is the share of the memory in use below which a region is not drawn by default.
const smallRegion = 0.01

// address is an address on the command line.
type address struct {
	value uint64
	set   bool
}

var _ pflag.Value = (*address)(nil)

// Set parses a number, hexadecimal if it begins with 0x.
func (a *address) Set(text string) error {
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return &groups.ValueError{Wrong: "not an address", Write: "one as 0x55d0c4a00000"}
	}
	a.value, a.set = n, true
	return nil
}

// String returns the address, or "" if there is none.
func (a *address) String() string {
	if a == nil || !a.set {
		return ""
	}
	return "0x" + strconv.FormatUint(a.value, 16)
}

// Type is the name of the value in help texts that give none.
func (a *address) Type() string { return "ADDRESS" }

// check checks the flags and determines the format and the event; 0 stands for the peak and
// the end.
func (o *heapmapOptions) check() (event uint64, err error) {
	if o.format == "" {
		switch o.suffix() {
		case "html", "htm":
			o.format = "html"
		default:
			o.format = "svg"
		}
	}
	if o.space != 0 && !o.base.set {
		return 0, cli.Usagef("--space needs --base")
	}
	if o.at != "peak" && o.at != "end" {
		if event, err = strconv.ParseUint(o.at, 10, 64); err != nil || event == 0 {
			return 0, cli.Usagef("--at %s: write the number of an event, peak or end", o.at)
		}
	}
	if o.chosen = o.regions != 0; !o.chosen {
		o.regions = 16
		if o.format == "html" {
			o.regions = 256
		}
	}
	return event, nil
}

func (o *heapmapOptions) run(ctx context.Context, s cli.Streams, args []string) error {
	event, err := o.check()
	if err != nil {
		return err
	}
	resolver, err := o.blocks.resolver()
	if err != nil {
		return err
	}
	m := heapmap.New(heapmap.Options{At: event, Framer: o.blocks.framer(resolver)})
	var curve *timeline.Timeline // of a page
	if o.format == "html" {
		curve = timeline.New(timeline.Options{Points: heapview.CurvePoints})
	}
	add := func(r *trace.Record) {
		resolver.Observe(r)
		m.Add(r)
		if curve != nil {
			curve.Add(r)
		}
	}
	return o.viewFlags.run(ctx, s, "heapmap", args, add, func(w io.Writer, name string) error {
		if n := m.Unknown(); n > 0 {
			warner(s.Err, "heapmap")(fmt.Errorf("%s unknown: live when the recording had a gap, in which frees were not recorded; drawn as live to the end", plural(n, "block")))
		}
		return o.write(w, m, curve, name, event)
	})
}

// write draws the map.
func (o *heapmapOptions) write(w io.Writer, m *heapmap.Map, curve *timeline.Timeline, name string, event uint64) error {
	switch {
	case o.at == "peak":
		event = max(m.Peak().Event, m.First())
	case o.at == "end":
		event = m.Events()
	case event > m.Events() || event <= m.First():
		return cli.Usagef("no event %d: those of the map are %d to %d", event, m.First()+1, m.Events())
	}
	v := heapview.Options{Name: name, Event: event, Width: o.width}
	all := m.Regions(1 << 12)
	if o.base.set {
		r, err := o.window(all)
		if err != nil {
			return err
		}
		v.View, v.Regions = r, []heapmap.Region{r}
	}
	switch {
	case o.format == "html":
		v.Regions, v.Left = largest(m, all, event, o.regions)
	case !o.base.set:
		v.Regions, v.Most = all, o.regions
		if !o.chosen {
			v.Small = smallRegion
		}
	}
	if len(v.Regions) == 0 {
		return errors.New("nothing to draw: the trace has no blocks of memory")
	}
	if o.format == "html" {
		return heapview.WriteHTML(w, m, curve, v)
	}
	return heapview.WriteSVG(w, m, v)
}

// window returns the range of --base and --space.
func (o *heapmapOptions) window(all []heapmap.Region) (heapmap.Region, error) {
	r := heapmap.Region{Start: o.base.value, Last: o.base.value + min(uint64(o.space)-1, ^o.base.value)}
	if o.space == 0 {
		i := slices.IndexFunc(all, func(a heapmap.Region) bool { return a.Start <= r.Start && r.Start <= a.Last })
		if i < 0 {
			return r, cli.Usagef("--base %#x: the trace has nothing in that memory; give its size with --space", r.Start)
		}
		r.Last = all[i].Last
	}
	if r.Last-r.Start >= 1<<52 {
		return r, cli.Usagef("--space is at most 4 PiB")
	}
	return r, nil
}

// largest returns the regions with most memory in use, in order, and the number of the
// others.
func largest(m *heapmap.Map, all []heapmap.Region, event uint64, limit int) (regions []heapmap.Region, left int) {
	if len(all) <= limit {
		return all, 0
	}
	usage := m.Usage(all, event)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(usage[b].Bytes+usage[b].Free, usage[a].Bytes+usage[a].Free)
	})
	order = order[:limit]
	slices.Sort(order)
	for _, i := range order {
		regions = append(regions, all[i])
	}
	return regions, len(all) - limit
}
