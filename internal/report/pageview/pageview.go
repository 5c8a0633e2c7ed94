// Package pageview prints the areas of a process as text, page by page, as
// sp-rtrace-pagemap does.
package pageview

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/pagemap"
)

// Map selects what a character of a map shows.
type Map uint8

// The maps.
const (
	None    Map = iota // no map, only the summary
	Types              // the kind of memory of the page
	Density            // the allocated part of the page
	Counts             // how many times the page is mapped
)

// Report is the content and the options of a report.
type Report struct {
	PID     int32
	Process string
	Map     Map
	Summary bool // print a summary of the kinds of pages of all areas at the end

	Areas    []pagemap.Area
	Pages    *pagemap.Pages // nil if Map is Density and there is no Summary
	PageSize uint64
	Blocks   *pagemap.Blocks // of Areas; nil unless Map is Density or calls are printed

	// Call prints the n-th lowest or highest call of an area and its stack,
	// each line after prefix. Lowest and Highest are the limits of Blocks.
	Lowest, Highest int
	Call            func(w io.Writer, prefix string, area, n int, highest bool) error
}

// perRow is the number of pages in a line of a map.
const perRow = 48

// writer prints a report.
type writer struct {
	*Report
	w     *bufio.Writer
	total uint64 // writable pages
	lost  int    // areas without data
}

// Write prints the report. lacking is the number of private writable areas that
// Pages does not contain.
func (r *Report) Write(out io.Writer) (lacking int, err error) {
	w := &writer{Report: r, w: bufio.NewWriter(out)}
	if r.Map != None {
		if err := w.areas(); err != nil {
			return 0, err
		}
	}
	if r.Summary {
		if err := w.summary(); err != nil {
			return 0, err
		}
	}
	for i := range r.Areas {
		if a := &r.Areas[i]; a.Write && !a.Shared && w.Pages != nil && !w.Pages.Has(a) {
			w.lost++
		}
	}
	return w.lost, w.w.Flush()
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(w.w, format, args...) }

// areas prints all writable areas.
func (w *writer) areas() error {
	w.printf("SP-RTRACE PAGEMAP REPORT\n========================\n\n")
	w.printf("Writable memory areas and their pages mapped to process:\n\t[%d] %s\n\n", w.PID, w.Process)
	w.printf("\nLegend for the characters used in the memory mappings below:\n%s\n", legends[w.Map])
	w.printf("  %d KB per map line.\n\n\n", perRow*w.PageSize/1024)
	for i := range w.Areas {
		if w.Areas[i].Write {
			w.total += w.Areas[i].Pages(w.PageSize)
		}
	}
	n := 0
	for i := range w.Areas {
		if !w.Areas[i].Write {
			continue
		}
		n++
		if err := w.area(n, i); err != nil {
			return err
		}
	}
	return nil
}

var legends = map[Map]string{
	Types: "  ' ' : non-dirty zero page\n  '.' : non-dirty page\n  '0' : zeroed dirty page in RAM\n" +
		"  '#' : dirty page in RAM\n  'Z' : swapped zeroed page\n  'S' : swapped page\n",
	Density: "\t' ' - no page memory allocated\n\t'0' - 0% < allocation % of page <= 10%\n\t'1' - 10% < allocation % of page <= 20%\n" +
		"\t...\n\t'9' - 90% < allocation % of page < 100%\n\t'#' - 100% of page allocated.\n" +
		"\t'*' - more than 100% of page allocated. Either calculation error\n" +
		"\t      or the input report was not processed with freed allocations removal filter.\n",
	Counts: "\t'0' - page not mapped\n\t'1' - page mapped once\n\t...\n\t'9' - page mapped 9 times\n\t'*' - page mapped 10 or more times\n",
}

// area prints one area.
func (w *writer) area(number, i int) error {
	a := &w.Areas[i]
	w.printf("%d. %s\n\n", number, a.Line)
	rule := strings.Repeat(" ", 10) + strings.Repeat("-", perRow) + "\n"
	w.printf("%s", rule)
	var kinds kinds
	var err error
	switch {
	case w.Map == Density:
		err = w.density(a, i)
	case !w.Pages.Has(a):
		w.printf("%08x |no page data|\n", a.Start)
	default:
		err = w.pages(a, &kinds)
	}
	if err != nil {
		return err
	}
	w.printf("%s\n", rule)
	if w.Map == Types && w.Pages.Has(a) {
		w.kinds(&kinds)
	}
	if err := w.calls(i); err != nil {
		return err
	}
	w.printf("\n")
	return nil
}

// calls prints the lowest and the highest allocations of an area.
func (w *writer) calls(i int) error {
	if w.Blocks == nil {
		return nil
	}
	for _, end := range [...]struct {
		title   string
		limit   int
		there   int
		highest bool
	}{
		{"Bottom", w.Lowest, len(w.Blocks.Lowest(i)), false},
		{"Top", w.Highest, len(w.Blocks.Highest(i)), true},
	} {
		if end.there == 0 {
			continue
		}
		w.printf("%s %d allocations:\n", end.title, end.limit)
		for n := range end.there {
			if err := w.Call(w.w, "\t", i, n, end.highest); err != nil {
				return err
			}
		}
		w.printf("\n")
	}
	return nil
}

// density prints the allocated part of each page.
func (w *writer) density(a *pagemap.Area, i int) error {
	next := uint64(0)
	marks := make([]byte, perRow)
	return pagemap.Rows(a, w.Blocks.Of(i), w.PageSize, perRow, func(page uint64, bytes []uint64) error {
		if page != next {
			w.printf("%10s... as above\n", "")
		}
		next = page + uint64(len(bytes))
		for i, n := range bytes {
			marks[i] = densityMark(n, w.PageSize)
		}
		w.printf("%08x |%s|\n", a.Start+page*w.PageSize, marks[:len(bytes)])
		return nil
	})
}

func densityMark(bytes, pageSize uint64) byte {
	switch {
	case bytes == 0:
		return ' '
	case bytes == pageSize:
		return '#'
	case bytes > pageSize:
		return '*'
	}
	return '0' + byte(bytes*10/pageSize)
}

// pages prints the pages of an area by kind or by count, and counts the kinds.
func (w *writer) pages(a *pagemap.Area, k *kinds) error {
	n := a.Pages(w.PageSize)
	for page := range n {
		if page%perRow == 0 {
			if page > 0 {
				w.printf("|\n")
			}
			w.printf("%08x |", a.Start+page*w.PageSize)
		}
		p, _, err := w.Pages.Page(a, page)
		if err != nil {
			return err
		}
		mark := k.add(&p)
		if w.Map == Counts {
			mark = '*'
			if p.Count < 10 {
				mark = '0' + byte(p.Count)
			}
		}
		if err := w.w.WriteByte(mark); err != nil {
			return err
		}
	}
	w.printf("|\n")
	return nil
}
