package pageview

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/allocmap"
)

// quietRows is how many empty rows in a row are printed at most.
const quietRows = 16

// WriteAllocMap prints a map of a heap. Unless all is set, of many empty rows
// that follow each other the first is printed and the others are counted.
func WriteAllocMap(out io.Writer, d *allocmap.Drawing, all bool) error {
	w := bufio.NewWriter(out)
	row := allocmap.PerRow * d.PageSize
	fmt.Fprintf(w, "Process use-case heap memory usage map.\n")
	fmt.Fprintf(w, "Single line corresponds to %dK (%#04x).\n", row/1024, row)
	fmt.Fprintf(w, "Each '#' char corresponds to %dK page (%#x) having non-freed data.\n", d.PageSize/1024, d.PageSize)
	fmt.Fprintf(w, "'T' marks the top of the heap and '|' to what it could be trimmed.\n")
	fmt.Fprintf(w, "'<' marks the lowest and '>' marks the highest allocation during the use-case.\n")
	writeRows(w, d, all)
	fmt.Fprintf(w, "Parsed %d unfreed allocations (largest being %d bytes),\n"+
		"residing on %d pages.  If highest allocation is next to\ntrim limit, it's blocking freeing of memory.\n", d.Blocks, d.Largest, d.Pages)
	return w.Flush()
}

// WriteAllocFrame prints a program for sh that shows a map of a heap alone on the
// screen, under a name of one line, for some seconds.
func WriteAllocFrame(out io.Writer, name string, d *allocmap.Drawing, seconds float64) error {
	w := bufio.NewWriter(out)
	// Nothing is special up to the line EOF, which no row of a map is; and a
	// name is not alone on its line.
	fmt.Fprintf(w, "clear\ncat <<'EOF'\n[%s]\n", name)
	writeRows(w, d, false)
	fmt.Fprintf(w, "EOF\nsleep %g\n", seconds)
	return w.Flush()
}

// writeRows prints the frame of a map and what is in it.
func writeRows(w io.Writer, d *allocmap.Drawing, all bool) {
	dashes := strings.Repeat("-", allocmap.PerRow)
	fmt.Fprintf(w, "           .%s.\n", dashes)
	for at := 0; at < len(d.Cells); {
		n := emptyRows(d.Cells[at:])
		if all || n <= quietRows {
			n = min(n, 1)
		}
		cells := bytes.ReplaceAll(d.Cells[at:at+allocmap.PerRow], []byte{0}, []byte{' '})
		fmt.Fprintf(w, "0x%08x |%s|\n", d.Base+uint64(at)*d.PageSize, cells)
		if n > 1 {
			fmt.Fprintf(w, "           ... %d more empty lines\n", n-1)
		}
		at += max(n, 1) * allocmap.PerRow
	}
	fmt.Fprintf(w, "           '%s'\n", dashes)
}

// emptyRows is how many rows of cells are empty, from the first on.
func emptyRows(cells []byte) int {
	rows := 0
	for len(cells) > 0 && len(bytes.Trim(cells[:allocmap.PerRow], "\x00")) == 0 {
		rows++
		cells = cells[allocmap.PerRow:]
	}
	return rows
}
