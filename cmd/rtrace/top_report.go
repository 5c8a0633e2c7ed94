package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/table"
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
	total, calls := r.counter.Total(), r.counter.Calls().Since(r.earlier)
	unknown := total.Unknown.Blocks > 0
	var lines strings.Builder
	fmt.Fprintf(&lines, "calls:     %d: %s, %s, %s\n", calls.All, plural(calls.Allocations, "allocation"), plural(calls.Frees, "free"), plural(calls.Reallocs, "realloc"))
	for _, line := range [...]struct {
		title string
		live.Amount
	}{
		{"allocated: ", total.Allocated}, {"temporary: ", total.Temporary}, {"live:      ", total.Live}, {"at peak:   ", total.AtPeak},
	} {
		fmt.Fprintf(&lines, "%s%s (%s)\n", line.title, plural(line.Blocks, "block"), plural(line.Bytes, "byte"))
	}
	if unknown {
		lines.WriteString(unknownText(amount(total.Unknown)) + "\n")
	}
	if _, err := io.WriteString(w, lines.String()); err != nil || len(r.rows) == 0 {
		return err
	}
	columns := []table.Column{
		{Title: "bytes"},
		{Title: "%"},
		{Title: "blocks"},
		{Title: "temporary"},
		{Title: "live"},
		{Title: "unknown"},
		{Title: "peak"},
		{Title: "at peak"},
		{Title: r.key.String(), Left: true},
	}
	cut := func(cells []string) []string { return cells }
	if !unknown {
		const at = 5
		columns = slices.Delete(columns, at, at+1)
		cut = func(cells []string) []string { return slices.Delete(cells, at, at+1) }
	}
	t := table.New(columns...)
	whole := r.options.order.of(&total)
	row := func(u *usage.Usage, peak, text string) {
		share := percent(r.options.order.of(u), whole)
		if r.options.sort == "peak" {
			share = "" // peaks are at different times
		}
		t.Row(cut([]string{
			number(u.Allocated.Bytes), share, number(u.Allocated.Blocks), number(u.Temporary.Blocks),
			number(u.Live.Bytes), number(u.Unknown.Bytes), peak, number(u.AtPeak.Bytes), text,
		})...)
	}
	spaced := slices.ContainsFunc(r.rows, func(x topRow) bool { return len(r.texts(x.group)) > 1 })
	for i := range r.rows {
		if spaced && i > 0 {
			t.Blank()
		}
		for n, text := range r.texts(r.rows[i].group) {
			if n == 0 {
				row(&r.rows[i].Usage, number(r.rows[i].Peak.Bytes), text)
			} else {
				t.Row(cut([]string{"", "", "", "", "", "", "", "", text})...)
			}
		}
	}
	if r.more > 0 {
		if spaced {
			t.Blank()
		}
		row(&r.others, "", "in "+plural(uint64(r.more), "other group"))
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	_, err := t.WriteTo(w)
	return err
}
