package pageview

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/allocmap"
)

// quietRows is the largest number of consecutive empty rows that are all
// printed.
const quietRows = 16

// WriteAllocMap prints a map of a heap. Unless all is set, it prints only the
// first of many consecutive empty rows and the number of the others.
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

// WriteAllocFrame prints a shell script that clears the screen and shows a map
// of a heap under a name, which must be one line, for some seconds.
func WriteAllocFrame(out io.Writer, name string, d *allocmap.Drawing, seconds float64) error {
	w := bufio.NewWriter(out)
	// The shell copies the text up to a line EOF. No row of a map is such a
	// line, and the name is not alone on its line.
	fmt.Fprintf(w, "clear\ncat <<'EOF'\n[%s]\n", name)
	writeRows(w, d, false)
	fmt.Fprintf(w, "EOF\nsleep %g\n", seconds)
	return w.Flush()
}

// writeRows prints the border and the rows of a map.
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

// emptyRows returns the number of empty rows at the start of cells.
func emptyRows(cells []byte) int {
	rows := 0
	for len(cells) > 0 && len(bytes.Trim(cells[:allocmap.PerRow], "\x00")) == 0 {
		rows++
		cells = cells[allocmap.PerRow:]
	}
	return rows
}
