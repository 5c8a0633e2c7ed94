package main

import (
	"bufio"
	"fmt"
	"io"

	"rtrace-bpf/internal/analysis/pagemap"
)

// explainFilters prints the page of --help-filter.
func (o *pagemapOptions) explainFilters(w io.Writer) error {
	_, err := io.WriteString(w, `Filters print the trace with fewer calls:

  -N, --filter-name NAME        blocks in areas whose path contains NAME, such as heap, stack or libc
  -A, --filter-address ADDRESS  blocks in the same area as ADDRESS
  -P, --filter-page TYPES       blocks that begin in a page with one of the flags TYPES,
                                among those that the other filters leave

-N takes precedence over -A. Pages are from the end of the trace, so -P is meaningful for
blocks that are live then: first select those with rtrace postproc -l.
With a map, -N and -A select the areas of the map.
`)
	return err
}

// explainPages prints the page of --help-pages.
func explainPages(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "Flags of pages, as in the kernel's /proc/kpageflags:\n\n")
	for i, f := range pagemap.Flags {
		if f.Mark == 0 {
			continue
		}
		if i == 48 {
			fmt.Fprintf(b, "\nA, E, I and P have another meaning in a summary, for pages of slabs and of files that are read ahead:\n\n")
		}
		fmt.Fprintf(b, "  %c  %-14s %s\n", f.Mark, f.Name, f.Text)
	}
	return b.Flush()
}
