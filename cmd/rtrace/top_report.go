package main

import (
	"cmp"
	"io"
	"slices"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
)

// topReport is the output of 'rtrace top'.
type topReport struct {
	*tally
	options *topOptions
	rows    []topRow // groups that are printed
	more    int      // groups that are not
	others  usage.Usage
}

// topRow is one group.
type topRow struct {
	group *sites.Group
	usage.Usage
}

// collect sorts the groups and selects those to print.
func (r *topReport) collect() {
	for n := range r.counter.Len() {
		r.rows = append(r.rows, topRow{r.groups.At(n), r.counter.Of(n)})
	}
	slices.SortStableFunc(r.rows, func(a, b topRow) int {
		by := r.options.order.of
		return cmp.Or(cmp.Compare(by(&b.Usage), by(&a.Usage)),
			cmp.Compare(b.Allocated.Bytes, a.Allocated.Bytes), cmp.Compare(b.Allocated.Blocks, a.Allocated.Blocks))
	})
	if top := r.options.top; top > 0 && top < len(r.rows) {
		for i := range r.rows[top:] {
			r.others.Add(&r.rows[top+i].Usage)
		}
		r.more = len(r.rows) - top
		r.rows = r.rows[:top]
	}
}

// print writes the report as text.
func (r *topReport) print(w io.Writer) error {
	total := r.counter.Total()
	if _, err := io.WriteString(w, topTotals(r.counter.Calls().Since(r.earlier), &total)); err != nil || len(r.rows) == 0 {
		return err
	}
	t := newTopTable(r.options, &total, nil)
	t.spaced = slices.ContainsFunc(r.rows, func(x topRow) bool { return len(r.texts(x.group)) > 1 })
	for i := range r.rows {
		t.group(&r.rows[i].Usage, nil, r.texts(r.rows[i].group))
	}
	if r.more > 0 {
		t.others(&r.others, r.more)
	}
	return t.write(w)
}
