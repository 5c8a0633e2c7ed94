package main

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/fleet"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/cli"
)

// topFleet is the output of 'rtrace top' for several traces.
type topFleet struct {
	fleetReader
	options   *topOptions
	rows      *fleet.Table[topSums]
	calls     usage.Calls
	total     usage.Usage
	replaced  amount
	unmatched uint64
	hints     hints
}

// topSums is the sums of a row.
type topSums struct {
	usage.Usage
	place
}

// runFleet prints who allocates most in several traces.
func (o *topOptions) runFleet(ctx context.Context, s cli.Streams, args []string) error {
	if err := o.checkGroups(); err != nil {
		return err
	}
	f := &topFleet{
		fleetReader: fleetReader{flags: &o.fleet, in: o.in, streams: s, command: "top"},
		options:     o, rows: fleet.NewTable[topSums](fleet.Per(o.fleet.per)),
	}
	var of topOptions
	var t *tally
	read := func(in *input, warn func(error)) (err error) {
		of = *o
		of.builds = make(map[string]string)
		t, err = of.tally(ctx, in, tallyOptions{file: in.name, warn: warn})
		return err
	}
	err := f.each(ctx, args, read, func(m *fleetTrace) error { return f.add(m, &of, t) })
	if !isIncomplete(err) {
		return err
	}
	if e := f.write(s.Out); e != nil {
		return e
	}
	if !o.json {
		f.hints.print(s.Err)
	}
	return err
}

// add adds a trace, which was read with options of its own.
func (f *topFleet) add(m *fleetTrace, of *topOptions, t *tally) error {
	if err := f.sameResource(&f.options.blockFlags, of.resource); err != nil {
		return err
	}
	for n := range t.counter.Len() {
		g := t.groups.At(n)
		row, isNew := f.rows.Row(&m.Member, of.placeKey(g))
		if isNew {
			row.Sum.place = of.place(&t.groupTexts, g)
		}
		u := t.counter.Of(n)
		row.Sum.Add(&u)
	}
	total := t.counter.Total()
	f.total.Add(&total)
	f.calls.AddAll(t.counter.Calls().Since(t.earlier))
	f.replaced.add(amount(t.counter.Replaced()))
	f.unmatched += t.counter.Unmatched()
	f.hints.add(&of.names, t.resolver)
	return nil
}

// sorted returns the rows to print, and the sums of the more rows that are left out.
func (f *topFleet) sorted() (rows []*fleet.Row[topSums], more int, others usage.Usage) {
	rows = slices.Clone(f.rows.Rows())
	by := f.options.order.of
	slices.SortStableFunc(rows, func(a, b *fleet.Row[topSums]) int {
		x, y := &a.Sum.Usage, &b.Sum.Usage
		return cmp.Or(cmp.Compare(by(y), by(x)), cmp.Compare(y.Allocated.Bytes, x.Allocated.Bytes), cmp.Compare(y.Allocated.Blocks, x.Allocated.Blocks),
			slices.Compare(a.Sum.texts, b.Sum.texts), cmp.Compare(a.Of, b.Of))
	})
	if top := f.options.top; top > 0 && top < len(rows) {
		for _, row := range rows[top:] {
			others.Add(&row.Sum.Usage)
		}
		return rows[:top], len(rows) - top, others
	}
	return rows, 0, others
}

// write writes the report as text or JSON.
func (f *topFleet) write(w io.Writer) error {
	rows, more, others := f.sorted()
	if f.options.json {
		return writeJSON(w, f.json(rows, more, &others))
	}
	lines := strings.Split(strings.TrimSuffix(topTotals(f.calls, &f.total), "\n"), "\n")
	if _, err := io.WriteString(w, f.head(lines, false)); err != nil || len(rows) == 0 {
		return err
	}
	t := newTopTable(f.options, &f.total, f.columns())
	t.spaced = slices.ContainsFunc(rows, func(r *fleet.Row[topSums]) bool { return len(r.Sum.texts) > 1 })
	for _, row := range rows {
		t.group(&row.Sum.Usage, f.cells(row.Of, &row.In), row.Sum.texts)
	}
	if more > 0 {
		t.others(&others, more)
	}
	return t.write(w)
}

// topFleetObject is the output of 'rtrace top --json' for several traces.
type topFleetObject struct {
	fleetObject
	By       string `json:"by"`
	Sort     string `json:"sort"`
	Resource string `json:"resource"`
	usage.Calls
	Total       topFigures    `json:"total"`
	Replaced    amount        `json:"allocated_twice"`
	Unmatched   uint64        `json:"unmatched_frees"`
	Groups      []topFleetRow `json:"groups"`
	OtherGroups int           `json:"other_groups"` // groups that --top leaves out
	Others      topFigures    `json:"others"`       // sums of these
}

type topFleetRow struct {
	topFigures
	rowObject
}

func (f *topFleet) json(rows []*fleet.Row[topSums], more int, others *usage.Usage) *topFleetObject {
	x := &topFleetObject{
		fleetObject: f.object(), By: f.options.key.String(), Sort: f.options.sort, Resource: f.options.resource, Calls: f.calls, Total: figures(&f.total),
		Replaced: f.replaced, Unmatched: f.unmatched, Groups: make([]topFleetRow, 0, len(rows)), OtherGroups: more, Others: figures(others),
	}
	for _, row := range rows {
		x.Groups = append(x.Groups, topFleetRow{figures(&row.Sum.Usage), f.row(row.Of, &row.In, &row.Sum.place)})
	}
	return x
}
