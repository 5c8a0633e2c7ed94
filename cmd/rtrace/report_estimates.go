package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/report/digestview"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// estimatedPage sums up a trace of windows for its page: by call site, as rtrace top does, and by the
// boxes of a flame graph.
type estimatedPage struct {
	estimate.Groups
	head     *headReader
	calls    *callReader
	became   string         // the program after the last exec
	sites    *sites.Grouper // by function
	framer   sites.Framer
	memo     sites.Memo
	places   [][]int        // numbers of the groups of an allocation, by its place
	byPlace  map[[2]int]int // by site and box
	siteOf   []int          // the group of each site
	boxes    []digestview.EstimatedBox
	groupOf  []int // the group of each box; the root has none
	children map[boxKey]int
	groups   int
	frames   []sites.Frame
}

// boxKey identifies a box of the flame graph.
type boxKey struct {
	parent  int
	frame   sites.Frame // reduced to its function
	inlined bool
}

// estimates writes the page of a trace that was recorded in windows.
func (o *reportOptions) estimates(ctx context.Context, w io.Writer, in *input, file string, warn func(error)) error {
	p := o.estimatedPage(ctx, in, file, o.resolver)
	err := in.outcome(p.read(o.resolver, warn))
	if !isIncomplete(err) {
		return err
	}
	about := o.about(in, err)
	b := bufio.NewWriter(w)
	if e := errors.Join(digestview.WriteEstimates(b, p.estimates(&about), about), b.Flush()); e != nil {
		return e
	}
	return err
}

// estimatedPage returns the sums of a trace before it is read.
func (o *reportOptions) estimatedPage(ctx context.Context, in *input, file string, r *resolve.Resolver) *estimatedPage {
	of := tallyFlags{}
	of.key, of.names, of.in = sites.ByFunction, o.names, o.in
	of.observeLate(ctx, r, in, file)
	return newEstimatedPage(in, r, of.grouping(r))
}

func newEstimatedPage(in *input, r *resolve.Resolver, grouping sites.Options) *estimatedPage {
	p := &estimatedPage{
		sites: sites.NewGrouper(grouping), framer: grouping.Framer, byPlace: make(map[[2]int]int), children: make(map[boxKey]int),
		head: &headReader{src: &introducer{in, r}}, boxes: make([]digestview.EstimatedBox, 1), groupOf: make([]int, 1),
	}
	p.calls = newCallReader(p.head, memoryType)
	return p
}

// read reads the trace.
func (p *estimatedPage) read(resolver *resolve.Resolver, warn func(error)) error {
	counter := usage.New(func(r *trace.Record) int {
		n := p.memo.Number(r, p.place)
		p.AddToAll(p.places[n], r.Call.Size)
		return n
	})
	err := each(p.calls, func(r *trace.Record) {
		if r.Kind == trace.KindExec && (r.PID == 0 || r.PID == p.head.pid) {
			p.became = strings.Clone(r.Exec.Name)
		}
		resolver.Observe(r)
		p.memo.Observe(r)
		p.Record(r)
		counter.Add(r)
	})
	p.calls.warn(warn)
	if err == nil {
		err = p.calls.missing()
	}
	return err
}

// place returns the number of the place of an allocation.
func (p *estimatedPage) place(r *trace.Record) int {
	site := p.sites.Find(r)
	if site == len(p.siteOf) {
		p.siteOf = append(p.siteOf, p.group())
	}
	groups, box := []int{p.siteOf[site]}, 0
	p.frames = p.framer.Append(p.frames[:0], r.PID, &r.Call.Stack, &r.Call.Caller, 0)
	for i := range slices.Backward(p.frames) {
		box = p.child(box, p.frames[i])
		groups = append(groups, p.groupOf[box])
	}
	key := [2]int{site, box}
	n, known := p.byPlace[key]
	if !known {
		n = len(p.places)
		p.byPlace[key] = n
		p.places = append(p.places, groups)
	}
	return n
}

// group returns the number of a new group.
func (p *estimatedPage) group() int {
	p.groups++
	return p.groups - 1
}

// child returns the box of a frame below another one. Lines and addresses within a function do not
// matter.
func (p *estimatedPage) child(parent int, f sites.Frame) int {
	inlined := f.Inlined
	f.ToFunction()
	if f.Position != "" {
		f.Addr = 0
	}
	key := boxKey{parent, f, inlined}
	n, known := p.children[key]
	if !known {
		n = len(p.boxes)
		p.children[key] = n
		f.Inlined = inlined
		p.boxes = append(p.boxes, digestview.EstimatedBox{Parent: parent, Frame: f})
		p.groupOf = append(p.groupOf, p.group())
	}
	return n
}

// estimates returns what the page shows.
func (p *estimatedPage) estimates(about *digestview.Options) *digestview.Estimates {
	e := &digestview.Estimates{
		Name: cmp.Or(p.became, p.head.process.Program(), about.File), Process: p.head.process.Name, PID: p.head.pid, Origin: p.head.header.Origin, Arch: p.head.header.Arch,
		Windows: p.Text(), Length: p.Length(), Total: p.All(), Rates: p.Rates(), Boxes: p.boxes, Lost: p.calls.stats.lost,
	}
	if first := p.calls.stats.first; first != 0 {
		e.Start = p.head.wall(first)
	}
	if c := p.Cost(); c != nil {
		e.Cost = []string{estimate.SlowDown(c), budgetText(c)}
	}
	texts := groupTexts{sites.ByFunction, &p.calls.stats}
	for n, group := range p.siteOf {
		e.Sites = append(e.Sites, digestview.EstimatedSite{Text: texts.texts(p.sites.At(n))[0], Allocated: p.Of(group)})
	}
	slices.SortStableFunc(e.Sites, func(a, b digestview.EstimatedSite) int {
		return cmp.Or(cmp.Compare(b.Bytes.Value, a.Bytes.Value), cmp.Compare(b.Blocks.Value, a.Blocks.Value))
	})
	e.Boxes[0].Allocated = e.Total
	for i := 1; i < len(e.Boxes); i++ {
		e.Boxes[i].Allocated = p.Of(p.groupOf[i])
	}
	return e
}
