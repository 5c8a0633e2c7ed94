package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"rtrace-bpf/internal/analysis/fleet"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/table"
)

// sorted returns the rows: those that grow first, and then the largest. rest is the sum of the
// more rows that are not printed.
func (f *leakFleet) sorted() (rows []*fleet.Row[leakSums], growing, more int, rest amount) {
	rows = slices.Clone(f.rows.Rows())
	slices.SortStableFunc(rows, func(a, b *fleet.Row[leakSums]) int {
		x, y := &a.Sum, &b.Sum
		return cmp.Or(cmp.Compare(y.growth.bytes, x.growth.bytes), cmp.Compare(y.growth.blocks, x.growth.blocks),
			cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(y.Blocks, x.Blocks), slices.Compare(x.texts, y.texts), cmp.Compare(a.Of, b.Of))
	})
	for _, row := range rows {
		if row.Sum.growth.in.Count().Traces > 0 {
			growing++
		}
	}
	top := f.options.top
	if f.folds() {
		if top = defaultGroups; growing > 0 {
			top = min(top, growing)
		}
	}
	if top > 0 && top < len(rows) {
		for _, row := range rows[top:] {
			rest.add(row.Sum.amount)
		}
		return rows[:top], growing, len(rows) - top, rest
	}
	return rows, growing, 0, rest
}

func (f *leakFleet) folds() bool {
	o := f.options
	return !o.flags.Changed("top") && !o.all && !o.json
}

// totals returns the first lines about the sums.
func (f *leakFleet) totals(growing int) (lines []string) {
	total := fmt.Sprintf("%s: %s (%s)", f.options.title(), plural(f.total.Blocks, "block"), plural(f.total.Bytes, "byte"))
	all := f.all
	if f.options.unknown {
		all = f.unknown
	}
	if all.Blocks != f.total.Blocks {
		total += fmt.Sprintf(", of %d (%s)", all.Blocks, plural(all.Bytes, "byte"))
	}
	lines = append(lines, total)
	if f.unknown.Blocks > 0 && !f.options.unknown {
		lines = append(lines, unknownText(f.unknown)+"; --unknown prints them")
	}
	if text := f.options.suppressions.text(); text != "" {
		lines = append(lines, text)
	}
	read := f.read.Count().Traces
	switch {
	case f.options.unknown || !f.options.judged():
	case growing > 0:
		lines = append(lines, fmt.Sprintf("growing steadily: %s, in %d of %s, printed first", plural(uint64(growing), "group"), f.growing.Count().Traces, plural(uint64(read), "trace")))
	case f.judged == 0:
		lines = append(lines, "no verdict on growth: the traces are too short to know whether a call site grows, or have no frees")
	case f.judged == read:
		lines = append(lines, "no call site grows steadily in any trace")
	default:
		lines = append(lines, fmt.Sprintf("no call site grows steadily in %d of %s; the others are too short to know, or have no frees", f.judged, plural(uint64(read), "trace")))
	}
	return lines
}

// print writes the report as text.
func (f *leakFleet) print(w io.Writer) error {
	rows, growing, more, rest := f.sorted()
	if _, err := io.WriteString(w, f.head(f.totals(growing), f.options.all)); err != nil || len(rows) == 0 {
		return err
	}
	columns := slices.Concat([]table.Column{{Title: "bytes"}, {Title: "%"}, {Title: "blocks"}}, f.columns(), []table.Column{{Title: f.options.key.String(), Left: true}})
	t := table.New(columns...)
	spaced := growing > 0 || slices.ContainsFunc(rows, func(r *fleet.Row[leakSums]) bool { return len(r.Sum.texts) > 1 })
	for n, row := range rows {
		if spaced && n > 0 {
			t.Blank()
		}
		cells := append([]string{number(row.Sum.Bytes), percent(row.Sum.Bytes, f.total.Bytes), number(row.Sum.Blocks)}, f.cells(row.Of, &row.In)...)
		for _, text := range f.texts(row) {
			t.Row(append(cells, text)...)
			cells = make([]string, len(columns)-1)
		}
	}
	if more > 0 {
		if spaced {
			t.Blank()
		}
		text := "in " + plural(uint64(more), "other group")
		switch {
		case f.folds() && growing > 0 && growing <= defaultGroups:
			text += ", none of which grows steadily; --all prints them"
		case f.folds():
			text += "; --all prints them"
		}
		cells := make([]string, len(columns))
		copy(cells, []string{number(rest.Bytes), percent(rest.Bytes, f.total.Bytes), number(rest.Blocks)})
		cells[len(cells)-1] = text
		t.Row(cells...)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	_, err := t.WriteTo(w)
	return err
}

// texts returns the lines of a row, preceded by its verdict if it grows.
func (f *leakFleet) texts(row *fleet.Row[leakSums]) []string {
	g := &row.Sum.growth
	n := g.in.Count().Traces
	if n == 0 {
		return row.Sum.texts
	}
	text := fmt.Sprintf("growing in %d of %s, %s/s", n, plural(uint64(row.In.Count().Traces), "trace"), figure.Bytes(uint64(g.bytes+0.5)))
	if n > 1 {
		text += " together"
	}
	return append([]string{text}, row.Sum.texts...)
}
