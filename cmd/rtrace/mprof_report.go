package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/profile"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/table"
)

// mprofReport is the output of 'rtrace mprof'.
type mprofReport struct {
	options *mprofOptions
	profile *profile.Profile
	total   profile.Usage
	limit   float64 // per cent: functions with less are left out of the graph for dot
}

func (r *mprofReport) view() profile.View {
	return profile.View{Addresses: r.options.addresses, ByCount: r.options.counts}
}

// print writes the tables.
func (r *mprofReport) print(w io.Writer) error {
	parts := []io.WriterTo{
		titled{"ALLOCATION BINS", "", r.bins()},
		titled{"DIRECT ALLOCATIONS", r.classes(), r.direct()},
		titled{"MEMORY LEAKS", r.depth(), r.leaks()},
	}
	if r.options.callGraph {
		parts = append(parts, r.callGraph())
	}
	return printAll(w, parts...)
}

func (r *mprofReport) depth() string {
	if r.options.depth == 0 {
		return "(whole stacks)"
	}
	return fmt.Sprintf("(maximum stack depth: %d)", r.options.depth)
}

// classes returns the note on the bounds of the classes of sizes.
func (r *mprofReport) classes() string {
	b := r.options.classes
	return fmt.Sprintf("(s <= %d < m <= %d < l <= %d < x)", b[0], b[1], b[2])
}

// titled is a table with a title.
type titled struct {
	title, note string
	table       io.WriterTo
}

// WriteTo implements io.WriterTo.
func (t titled) WriteTo(w io.Writer) (int64, error) {
	n, err := fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(t.title+"  "+t.note))
	if err != nil {
		return int64(n), err
	}
	m, err := t.table.WriteTo(w)
	return int64(n) + m, err
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// bins returns the table of sizes.
func (r *mprofReport) bins() *table.Table {
	t := table.New(
		table.Column{Title: "size"},
		table.Column{Title: "count", Group: "allocated"}, table.Column{Title: "%", Group: "allocated"},
		table.Column{Title: "bytes", Group: "allocated"}, table.Column{Title: "%", Group: "allocated"},
		table.Column{Title: "count", Group: "unfreed", Gap: 4}, table.Column{Title: "%", Group: "unfreed"},
		table.Column{Title: "bytes", Group: "unfreed"}, table.Column{Title: "%", Group: "unfreed"},
	)
	count, bytes := r.total.Allocated.Total()
	unfreed, left := r.total.Unfreed.Total()
	row := func(size string, n, b, m, l uint64) {
		t.Row(size, number(n), percent(n, count), number(b), percent(b, bytes), number(m), percent(m, unfreed), number(l), percent(l, left))
	}
	bins := r.profile.Bins()
	t.Blank()
	for size, n := range bins.Allocated.Count {
		if n > 0 {
			m := bins.Unfreed.Count[size]
			row(strconv.Itoa(size), n, n*uint64(size), m, m*uint64(size))
		}
	}
	if n := bins.Allocated.Above; n.Count > 0 {
		row(">= "+strconv.Itoa(r.options.bins), n.Count, n.Bytes, bins.Unfreed.Above.Count, bins.Unfreed.Above.Bytes)
	}
	t.Blank()
	t.Row("total", number(count), "", number(bytes), "", number(unfreed), "", number(left))
	return t
}

// classColumns are the columns of bytes and of the shares of the classes.
func classColumns(group string, gap int) []table.Column {
	columns := []table.Column{{Title: "bytes", Group: group, Gap: gap}}
	for _, class := range [...]string{"s", "m", "l", "x"} {
		columns = append(columns, table.Column{Title: class, Group: group, Gap: 1, Width: 2})
	}
	return columns
}

// classCells are the cells of these columns: shares of the whole.
func classCells(s *profile.Sums, whole uint64) []string {
	_, bytes := s.Total()
	cells := []string{number(bytes)}
	for _, part := range s.Bytes {
		cells = append(cells, shareText(part, whole))
	}
	return cells
}

// shareText returns a share in per cent with two characters, as in mprof.
func shareText(part, whole uint64) string {
	switch p := share(part, whole); {
	case part == 0:
		return ""
	case p <= 0.5:
		return "."
	case p >= 99.5:
		return "%%"
	default:
		return fmt.Sprintf("%.0f", p)
	}
}

// direct returns the table of functions.
func (r *mprofReport) direct() *table.Table {
	var columns []table.Column
	for i, group := range [...]string{"allocated", "unfreed"} {
		c := classColumns(group, 4*i)
		columns = append(columns, c[0], table.Column{Title: "%", Group: group})
		columns = append(columns, c[1:]...)
	}
	t := table.New(append(columns, table.Column{Title: "count"}, table.Column{Title: "function", Left: true})...)
	_, bytes := r.total.Allocated.Total()
	_, left := r.total.Unfreed.Total()
	row := func(u *profile.Usage, function string, total bool) {
		var cells []string
		for _, part := range [...]struct {
			sums  *profile.Sums
			whole uint64
		}{{&u.Allocated, bytes}, {&u.Unfreed, left}} {
			c := classCells(part.sums, part.whole)
			_, n := part.sums.Total()
			share := percent(n, part.whole)
			if total {
				share = ""
			}
			cells = append(cells, c[0], share)
			cells = append(cells, c[1:]...)
		}
		n, _ := u.Allocated.Total()
		t.Row(append(cells, number(n), function)...)
	}
	t.Blank()
	for _, x := range r.profile.Direct(r.view()) {
		row(&x.Usage, r.label(&x.Frames[0]), false)
	}
	t.Blank()
	row(&r.total, "total", true)
	return t
}

// label returns the name of a function, with --addresses also the place in it.
func (r *mprofReport) label(f *sites.Frame) string {
	switch {
	case !r.options.addresses || f.Function == "":
		return f.Label()
	case f.Addr != 0:
		return f.Address() + " " + f.String()
	}
	return f.String()
}

// leaks returns the table of blocks that were not freed.
func (r *mprofReport) leaks() *table.Table {
	columns := []table.Column{{Title: "%", Group: "unfreed"}}
	for _, title := range [...]string{"bytes", "%", "count", "%"} {
		columns = append(columns, table.Column{Title: title, Group: "unfreed"})
	}
	columns = append(columns,
		table.Column{Title: "bytes", Group: "allocated", Gap: 4}, table.Column{Title: "count", Group: "allocated"},
		table.Column{Title: "function", Left: true})
	t := table.New(columns...)
	_, all := r.total.Unfreed.Total()
	row := func(u *profile.Usage, share, function string) {
		n, bytes := u.Allocated.Total()
		m, left := u.Unfreed.Total()
		t.Row(share, number(left), percent(left, bytes), number(m), percent(m, n), number(bytes), number(n), function)
	}
	t.Blank()
	for _, x := range r.profile.Leaks(r.options.depth, r.view()) {
		_, left := x.Unfreed.Total()
		row(&x.Usage, percent(left, all), r.label(&x.Frames[0]))
		for i := range x.Frames[1:] {
			t.Row("", "", "", "", "", "", "", "  "+r.label(&x.Frames[1+i]))
		}
	}
	t.Blank()
	row(&r.total, "", "total")
	return t
}
