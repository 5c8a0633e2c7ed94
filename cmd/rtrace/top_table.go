package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/table"
)

// topTotals returns the lines of 'rtrace top' about all groups.
func topTotals(calls usage.Calls, total *usage.Usage) string {
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
	if total.Unknown.Blocks > 0 {
		lines.WriteString(unknownText(amount(total.Unknown)) + "\n")
	}
	return lines.String()
}

// topTable is the table of 'rtrace top'.
type topTable struct {
	*table.Table
	options *topOptions
	unknown bool   // there is a column for unknown blocks
	whole   uint64 // 100 %
	extra   int    // columns before the last one
	rows    int
	spaced  bool // empty lines separate groups
}

// newTopTable returns a table without rows. extra are columns before the last one.
func newTopTable(o *topOptions, total *usage.Usage, extra []table.Column) *topTable {
	t := &topTable{options: o, unknown: total.Unknown.Blocks > 0, whole: o.order.of(total), extra: len(extra)}
	columns := []table.Column{{Title: "bytes"}, {Title: "%"}, {Title: "blocks"}, {Title: "temporary"}, {Title: "live"}}
	if t.unknown {
		columns = append(columns, table.Column{Title: "unknown"})
	}
	columns = append(columns, table.Column{Title: "peak"}, table.Column{Title: "at peak"})
	t.Table = table.New(append(slices.Concat(columns, extra), table.Column{Title: o.key.String(), Left: true})...)
	return t
}

// row adds a row.
func (t *topTable) row(u *usage.Usage, peak string, extra []string, text string) {
	share := percent(t.options.order.of(u), t.whole)
	if t.options.sort == "peak" {
		share = "" // peaks are at different times
	}
	cells := []string{number(u.Allocated.Bytes), share, number(u.Allocated.Blocks), number(u.Temporary.Blocks), number(u.Live.Bytes)}
	if t.unknown {
		cells = append(cells, number(u.Unknown.Bytes))
	}
	t.Row(append(append(append(cells, peak, number(u.AtPeak.Bytes)), extra...), text)...)
}

// group adds the rows of a group, one for each text.
func (t *topTable) group(u *usage.Usage, extra, texts []string) {
	if t.spaced && t.rows > 0 {
		t.Blank()
	}
	t.rows++
	for n, text := range texts {
		if n == 0 {
			t.row(u, number(u.Peak.Bytes), extra, text)
			continue
		}
		cells := make([]string, 7+t.extra)
		if t.unknown {
			cells = append(cells, "")
		}
		t.Row(append(cells, text)...)
	}
}

// others adds the row of the n groups that --top leaves out.
func (t *topTable) others(u *usage.Usage, n int) {
	if t.spaced {
		t.Blank()
	}
	t.row(u, "", make([]string, t.extra), "in "+plural(uint64(n), "other group"))
}

// write writes the table after an empty line.
func (t *topTable) write(w io.Writer) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	_, err := t.WriteTo(w)
	return err
}
