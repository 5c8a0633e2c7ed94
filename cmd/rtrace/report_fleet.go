package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"rtrace-bpf/internal/analysis/fleet"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/digestview"
)

// pageNotes is how many lines about traces a page begins with.
const pageNotes = 4

// reportFleet is the page of several traces. Its figures are those of rtrace leaks and rtrace top.
type reportFleet struct {
	leakFleet
	sums   *fleetSums
	traces map[*fleetTrace]*digestview.FleetTrace
}

// runFleet writes the page of several traces. It reads each trace twice: for what is live and grows, and
// for what was allocated.
func (o *reportOptions) runFleet(ctx context.Context, s cli.Streams, args []string) (err error) {
	leaks := &leaksOptions{groupFlags: o.lines(), fleet: o.fleet}
	f := &reportFleet{
		leakFleet: leakFleet{
			fleetReader: fleetReader{flags: &o.fleet, in: o.in, streams: s, command: "report"},
			options:     leaks, rows: fleet.NewTable[leakSums](fleet.PerFleet),
		},
		sums: newFleetSums(), traces: make(map[*fleetTrace]*digestview.FleetTrace),
	}
	if err := f.open(args); err != nil {
		return err
	}
	for _, t := range f.leakFleet.traces {
		if sameFile(o.output, t.File) {
			return cli.Usagef("%s is both input and output", o.output)
		}
	}
	out, err := create(s, o.output, "", htmlContent)
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	var of *leaksOptions
	var r *leakReport
	var t *tally
	read := func(in *input, warn func(error)) (err error) {
		of = leaks.again()
		if r, err = of.find(ctx, in, warn); !isIncomplete(in.outcome(err)) {
			return err
		}
		var e error
		if t, e = f.tally(ctx, in.name, of); e != nil {
			return e
		}
		return err
	}
	err = f.eachOpened(ctx, read, func(m *fleetTrace) error { return f.add(m, of, r, t) })
	if !isIncomplete(err) {
		return err
	}
	w := bufio.NewWriter(out)
	if e := errors.Join(digestview.WriteFleet(w, f.page()), w.Flush()); e != nil {
		return e
	}
	f.hints.print(s.Err)
	return err
}

// lines returns the flags of rtrace leaks and rtrace top without any, and with the names of the page.
func (o *reportOptions) lines() groupFlags {
	g := groupFlags{names: o.names, key: sites.ByLine}
	g.names.base = false
	g.in, g.resource = o.in, memoryType
	return g
}

// tally reads a trace again, for what it allocated by stack.
func (f *reportFleet) tally(ctx context.Context, file string, of *leaksOptions) (_ *tally, err error) {
	none := func(error) {} // it was reported when the trace was read first
	in, err := f.in.openNamed(ctx, nil, f.command, file, none)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	flags := &tallyFlags{groupFlags: of.groupFlags}
	flags.key = sites.ByStack
	t, err := flags.tally(ctx, in, tallyOptions{file: file, pairs: true, warn: none})
	if isIncomplete(in.outcome(err)) {
		err = nil
	}
	return t, err
}

func (f *reportFleet) add(m *fleetTrace, of *leaksOptions, r *leakReport, t *tally) error {
	if err := f.leakFleet.add(m, of, r); err != nil {
		return err
	}
	part := f.sums.part(m)
	row := &digestview.FleetTrace{Part: part, Use: f.sums.add(m, part, &of.groupFlags, t)}
	row.Calls = t.counter.Calls().All
	row.Growing = f.sums.grow(m, part, &of.groupFlags, r)
	f.traces[m] = row
	return nil
}

// page returns what the page shows.
func (f *reportFleet) page() *digestview.Fleet {
	of := f.read.Count()
	p := &digestview.Fleet{
		Title: plural(uint64(of.Traces), "trace"), Of: f.known(), Resource: f.options.resource,
		Parts: f.sums.parts, Sites: f.sums.sites, Stacks: f.sums.stacks,
		Notes: []string{"The live blocks and verdicts are those of rtrace leaks, and the allocations those of rtrace top, over the same traces. A call site is the same in two traces if its function, file and line are, or without a name, its file, build and offset. Resource: " + f.options.resource + "."},
	}
	growing := f.order(p)
	lines := f.totals(growing)
	p.Verdict = sentence(lines[len(lines)-1])
	if growing > 0 {
		p.Verdict = fmt.Sprintf("%s with steady growth, in %d of %s.", plural(uint64(growing), "call site"), f.growing.Count().Traces, plural(uint64(of.Traces), "trace"))
	}
	for _, line := range lines[:len(lines)-1] {
		p.Notes = append(p.Notes, sentence(line))
	}
	p.Warnings = f.notes()
	if more := len(p.Warnings) - pageNotes; more > 0 {
		p.Warnings = append(p.Warnings[:pageNotes:pageNotes], fmt.Sprintf("careful: %s about traces; open their rows in the table of traces", plural(uint64(more), "more line")))
	}
	for _, t := range f.leakFleet.traces {
		row := &digestview.FleetTrace{Part: -1}
		if made := f.traces[t]; made != nil && t.included() {
			row = made
		}
		row.File, row.Host, row.Service, row.Notes = t.File, t.Host, t.Service, t.notes
		switch {
		case !t.included():
			row.State = "not included"
		case t.err != nil:
			row.State = "incomplete"
		case len(t.notes) > 0:
			row.State = "doubtful"
		}
		if t.err != nil {
			row.Notes = append([]string{t.err.Error()}, t.notes...)
		}
		p.Traces = append(p.Traces, *row)
	}
	return p
}

// order sorts the call sites of a page: those that grow first, and then the largest. It returns how many
// grow.
func (f *reportFleet) order(p *digestview.Fleet) (growing int) {
	type sums struct {
		rate                   float64
		live, allocated, grows uint64
	}
	of := make([]sums, len(p.Sites))
	order := make([]int, len(p.Sites))
	for i := range p.Sites {
		order[i] = i
		for k := range p.Sites[i].In {
			in := &p.Sites[i].In[k]
			of[i].rate += in.Bytes
			of[i].live += in.Live.Bytes
			of[i].allocated += in.Allocated.Bytes
			of[i].grows += uint64(in.Growing)
		}
		if of[i].grows > 0 {
			growing++
		}
	}
	slices.SortFunc(order, func(x, y int) int {
		a, b := &of[x], &of[y]
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(b.live, a.live), cmp.Compare(b.allocated, a.allocated), cmp.Compare(p.Sites[x].Name, p.Sites[y].Name), cmp.Compare(x, y))
	})
	number := make([]int, len(order))
	sorted := make([]digestview.FleetSite, len(order))
	for n, i := range order {
		sorted[n], number[i] = p.Sites[i], n
	}
	p.Sites = sorted
	for i := range p.Stacks {
		p.Stacks[i].Site = number[p.Stacks[i].Site]
	}
	return growing
}

// known returns how many hosts and services the traces are of.
func (f *reportFleet) known() string {
	of := f.read.Count()
	host, service := f.read.Knows()
	text := "hosts not known"
	if host {
		text = plural(uint64(of.Hosts), "host")
	}
	if service {
		return text + ", " + plural(uint64(of.Services), "service")
	}
	return text + ", services not known"
}

// sentence returns a line of a report as a sentence.
func sentence(line string) string {
	if line == "" {
		return ""
	}
	if line[0] >= 'a' && line[0] <= 'z' {
		line = string(line[0]-'a'+'A') + line[1:]
	}
	return line + "."
}
