package pageview_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/analysis/allocmap"
	"rtrace-bpf/internal/analysis/pagemap"
	"rtrace-bpf/internal/report/pageview"
	"rtrace-bpf/trace"
)

// TestDensity prints pages of 4096 bytes that are empty, partly allocated,
// allocated except for a byte, full, and over-full. Areas that are not writable
// are left out, and many equal rows are one line.
func TestDensity(t *testing.T) {
	areas, err := pagemap.ReadMaps(strings.NewReader("00010000-00011000 r--p 00000000 00:00 0\n00020000-00220000 rw-p 00000000 00:00 0          [heap]\n"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := pagemap.NewBlocks(areas)
	blocks.Sizes, blocks.Bottom = true, 1
	for seq, b := range [][2]uint64{{0x21000, 409}, {0x22000, 410}, {0x23000, 4095}, {0x24000, 4096}, {0x25000, 4096}, {0x25010, 1}} {
		blocks.Add(&trace.Record{Kind: trace.KindCall, Call: trace.Call{Seq: uint64(seq), Op: trace.OpAlloc, ID: b[0], Size: b[1]}})
	}
	r := pageview.Report{
		PID: 7, Process: "demo", Map: pageview.Density, Areas: areas, PageSize: 4096, Blocks: blocks, Lowest: 1,
		Call: func(w io.Writer, prefix string, area, n int, highest bool) error {
			_, err := fmt.Fprintf(w, "%s%d %d %v\n", prefix, area, n, highest)
			return err
		},
	}
	var out strings.Builder
	if lacking, err := r.Write(&out); lacking != 0 || err != nil {
		t.Errorf("%d areas are lacking, %v", lacking, err)
	}
	_, got, _ := strings.Cut(out.String(), "  192 KB per map line.\n\n\n")
	rule := strings.Repeat(" ", 10) + strings.Repeat("-", 48) + "\n"
	want := "1. 00020000-00220000 rw-p 00000000 00:00 0          [heap]\n\n" + rule +
		"00020000 | 019#*" + strings.Repeat(" ", 42) + "|\n"
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, rule+"\nBottom 1 allocations:\n\t1 0 false\n\n\n") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if !strings.Contains(out.String(), "\t[7] demo\n") || strings.Contains(got, "00010000") {
		t.Errorf("got\n%s", &out)
	}
}

// TestAllocMap checks that of many empty rows only the first is printed and the
// others are counted, unless all rows are requested.
func TestAllocMap(t *testing.T) {
	cells := make([]byte, 30*allocmap.PerRow)
	cells[0], cells[len(cells)-1] = '#', 'T'
	d := allocmap.Drawing{Base: 0x10000, PageSize: 4096, Cells: cells, Blocks: 1, Largest: 10, Pages: 1}
	empty := "|" + strings.Repeat(" ", allocmap.PerRow) + "|\n"
	rows := func(all bool) string {
		t.Helper()
		var out strings.Builder
		if err := pageview.WriteAllocMap(&out, &d, all); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := rows(true); strings.Count(got, empty) != 28 || strings.Contains(got, "more empty lines") {
		t.Errorf("all rows:\n%s", got)
	}
	got := rows(false)
	if strings.Count(got, empty) != 1 || !strings.Contains(got, "0x00050000 "+empty+"           ... 27 more empty lines\n0x00750000 |") {
		t.Errorf("some rows:\n%s", got)
	}
	var out strings.Builder
	d.Cells = d.Cells[:allocmap.PerRow]
	if err := pageview.WriteAllocFrame(&out, "a b", &d, 0.25); err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("-", allocmap.PerRow)
	want := "clear\ncat <<'EOF'\n[a b]\n           ." + line + ".\n0x00010000 |#" + strings.Repeat(" ", allocmap.PerRow-1) +
		"|\n           '" + line + "'\nEOF\nsleep 0.25\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("frame (-want +got):\n%s", d)
	}
}
