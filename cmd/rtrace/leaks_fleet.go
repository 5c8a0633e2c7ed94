package main

import (
	"context"

	"rtrace-bpf/internal/analysis/fleet"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/verdict"
)

// leakFleet is the output of 'rtrace leaks' for several traces.
type leakFleet struct {
	fleetReader
	options   *leaksOptions
	rows      *fleet.Table[leakSums]
	total     amount
	all       amount // including blocks that are left out
	unknown   amount
	replaced  amount
	unmatched uint64
	growing   fleet.Set // the traces in which something grows
	judged    int       // traces that are long enough for a verdict that nothing grows
	hints     hints
}

// leakSums is the sums of a row.
type leakSums struct {
	amount
	place
	growth leakGrowth
}

// leakGrowth is how a row grows, in the traces in which it does.
type leakGrowth struct {
	in            fleet.Set
	live          amount
	blocks, bytes float64 // per second, of all these traces together
}

// runFleet prints what is live in several traces.
func (o *leaksOptions) runFleet(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.checkGroups(); err != nil {
		return err
	}
	if o.blocks {
		return cli.WithHint(cli.Usagef("--blocks: the blocks of several traces are not listed"), "name one FILE")
	}
	f := &leakFleet{
		fleetReader: fleetReader{flags: &o.fleet, in: o.in, streams: s, command: "leaks"},
		options:     o, rows: fleet.NewTable[leakSums](fleet.Per(o.fleet.per)),
	}
	var of *leaksOptions
	var r *leakReport
	read := func(in *input, warn func(error)) (err error) {
		of = o.again()
		r, err = of.find(ctx, in, warn)
		return err
	}
	err := f.each(ctx, args, read, func(t *fleetTrace) error { return f.add(t, of, r) })
	if !isIncomplete(err) {
		return err
	}
	if o.json {
		if e := writeJSON(s.Out, f.json()); e != nil {
			return e
		}
		return err
	}
	if e := f.print(s.Out); e != nil {
		return e
	}
	f.hints.print(s.Err)
	return err
}

// again returns the options for the next trace of several.
func (o *leaksOptions) again() *leaksOptions {
	of := *o
	of.suppressions = o.suppressions.again()
	of.builds = make(map[string]string)
	return &of
}

// add adds a trace, which was read with options of its own.
func (f *leakFleet) add(t *fleetTrace, of *leaksOptions, r *leakReport) error {
	if err := f.sameResource(&f.options.blockFlags, of.resource); err != nil {
		return err
	}
	groups := r.groups.Groups()
	if r.trends != nil {
		r.trends.judge(groups)
		if observed := verdict.ObservationOf(r.trends.engine.State(), of.resource); observed.Enough() {
			f.judged++
		}
		if r.trends.suspects > 0 {
			f.growing.Add(&t.Member)
		}
	}
	for _, g := range groups {
		row, isNew := f.rows.Row(&t.Member, of.placeKey(g))
		if isNew {
			row.Sum.place = of.place(&r.groupTexts, g)
		}
		live := amount{g.Blocks, g.Bytes}
		row.Sum.add(live)
		f.total.add(live)
		if r.trends == nil {
			continue
		}
		if tr := r.trends.of[g]; tr.Kind == trend.Growing {
			row.Sum.growth.add(t, live, tr)
		}
	}
	f.all.add(r.all)
	f.unknown.add(r.unknown)
	f.replaced.add(r.replaced)
	f.unmatched += r.unmatched
	f.options.suppressions.add(of.suppressions)
	f.note(t, r)
	f.hints.add(&of.names, r.resolver)
	return nil
}

func (g *leakGrowth) add(t *fleetTrace, live amount, tr *trend.Trend) {
	g.in.Add(&t.Member)
	g.live.add(live)
	g.blocks += tr.Blocks.PerSecond
	g.bytes += tr.Bytes.PerSecond
}

// note keeps what the report of a trace alone begins with.
func (f *leakFleet) note(t *fleetTrace, r *leakReport) {
	if r.rss != nil && r.rss.Elsewhere {
		t.notes = append(t.notes, r.rss.Verdict)
	}
	if text := youngText(&r.young); text != "" {
		t.notes = append(t.notes, text)
	}
}
