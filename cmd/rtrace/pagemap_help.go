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

  -N, --filter-name NAME        blocks in areas whose path holds NAME, as heap, stack or libc
  -A, --filter-address ADDRESS  blocks in the same area as ADDRESS
  -P, --filter-page TYPES       blocks that begin in a page with one of the flags TYPES,
                                of those that the others leave

-N goes before -A. Since pages are as they were at the end, -P means something for
blocks that are live then: print those first with rtrace postproc -l.
With a map, -N and -A choose the areas of the map.
`)
	return err
}

// explainPages prints the page of --help-pages.
func explainPages(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "Flags of pages, as the kernel has them in /proc/kpageflags:\n\n")
	for i, f := range pagemap.Flags {
		if f.Mark == 0 {
			continue
		}
		if i == 48 {
			fmt.Fprintf(b, "\nWhat A, E, I and P mean in a summary besides, in pages of slabs and of files that are read ahead:\n\n")
		}
		fmt.Fprintf(b, "  %c  %-14s %s\n", f.Mark, f.Name, f.Text)
	}
	return b.Flush()
}
