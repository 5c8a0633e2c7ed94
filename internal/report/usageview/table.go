package usageview

import (
	"strconv"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/table"
)

// Title returns the title of a report.
func Title(u *consumption.Usage, r consumption.Report) string {
	title := map[consumption.Report]string{
		consumption.Totals:   "Amount of non-freed allocations",
		consumption.Activity: "Allocation and deallocation rate",
		consumption.Lifetime: "Lifetime of blocks",
		consumption.Count:    "Number of allocations per size",
		consumption.Size:     "Total size of allocations per size",
	}[r]
	if r == consumption.Activity {
		title += " in " + slice(u)
	}
	return title
}

// slice returns the length of the intervals of the activity report.
func slice(u *consumption.Usage) string {
	if span := u.Span(); span.Calls {
		return span.Length(u.Slice())
	}
	return figure.Seconds(uint64(u.Slice()))
}

// Table returns the figures of a report.
func Table(u *consumption.Usage, r consumption.Report) *table.Table {
	switch r {
	case consumption.Totals:
		return totalsTable(u)
	case consumption.Activity:
		return activityTable(u)
	case consumption.Lifetime:
		return lifetimeTable(u)
	default:
		return histogramTable(u)
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func resource(title string) table.Column { return table.Column{Title: title, Left: true} }

func totalsTable(u *consumption.Usage) *table.Table {
	t := table.New(resource("resource"), resource("state"),
		table.Column{Title: "count", Group: "total"}, table.Column{Title: "size", Group: "total"},
		table.Column{Title: "count", Group: "non-freed"}, table.Column{Title: "size", Group: "non-freed"},
		table.Column{Title: "time"})
	span := u.Span()
	for _, k := range u.Kinds() {
		row := func(name, state string, all, live live.Amount, at string) {
			t.Row(name, state, number(all.Blocks), number(all.Bytes), number(live.Blocks), number(live.Bytes), at)
		}
		row(sites.Printable(k.Type), "peak", k.Peak.Allocated, k.Peak.Live, span.Text(k.Peak.At))
		row("", "end", k.Allocated, k.Live, span.Text(span.Last))
	}
	return t
}

func activityTable(u *consumption.Usage) *table.Table {
	t := table.New(resource("resource"), resource("state"), table.Column{Title: "count"}, table.Column{Title: "size"}, table.Column{Title: "time"})
	span := u.Span()
	for _, k := range u.Kinds() {
		row := func(name, state string, r consumption.Rate) {
			at := ""
			if r.Found {
				at = span.Text(r.At)
			}
			t.Row(name, state, number(r.Count), number(r.Bytes), at)
		}
		row(sites.Printable(k.Type), "peak size", k.Rates.Bytes)
		row("", "peak allocs", k.Rates.Allocs)
		row("", "peak frees", k.Rates.Frees)
	}
	return t
}

func lifetimeTable(u *consumption.Usage) *table.Table {
	t := table.New(resource("resource"), resource("state"), table.Column{Title: "size"}, table.Column{Title: "count"}, table.Column{Title: "time"})
	span := u.Span()
	for _, k := range u.Kinds() {
		t.Row(sites.Printable(k.Type), "min", number(k.Smallest.Size), number(k.Smallest.Count), span.Text(k.Smallest.At))
		t.Row("", "max", number(k.Largest.Size), number(k.Largest.Count), span.Text(k.Largest.At))
		t.Row("", "average", number(k.Lives.Average))
		t.Row("", "median", number(k.Lives.Median))
	}
	return t
}

func histogramTable(u *consumption.Usage) *table.Table {
	t := table.New(resource("resource"), resource("allocs"), table.Column{Title: "median"}, table.Column{Title: "count"}, table.Column{Title: "total size"})
	for _, k := range u.Kinds() {
		freed, unfreed, both := u.Summaries(k)
		row := func(name, allocs string, s consumption.Summary) {
			t.Row(name, allocs, number(s.Median), number(s.Blocks), number(s.Bytes))
		}
		row(sites.Printable(k.Type), "freed", freed)
		row("", "unfreed", unfreed)
		row("", "both", both)
	}
	return t
}

// Sizes returns the table of a histogram of one type of resource.
func Sizes(k *consumption.Kind, r consumption.Report) *table.Table {
	t := table.New(table.Column{Title: "size"}, table.Column{Title: "unfreed"}, table.Column{Title: "freed"})
	for _, s := range k.Sizes() {
		each := uint64(1)
		if r == consumption.Size {
			each = s.Size
		}
		t.Row(number(s.Size), number(s.Unfreed()*each), number(s.Freed*each))
	}
	return t
}
