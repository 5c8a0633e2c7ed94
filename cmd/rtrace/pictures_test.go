package main

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

var statistic = regexp.MustCompile(`(?m)^([a-z ]+): +(\d+)(?: \((\d+) bytes?\)| bytes?)$`)

// The figures of the timeline are those of mptrace.
func TestTimelineAsMptrace(t *testing.T) {
	files, err := filepath.Glob(mpatrolCorpus + "/real/*.stats.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		tl := timeline.New(timeline.Options{Points: 7, Resource: memoryType})
		_, src := records(t, mpatrolCorpus+"/real/"+name+".trace")
		if err := each(src, tl.Add); err != nil {
			t.Fatal(err)
		}
		total := tl.Totals()
		got := map[string][2]uint64{
			"allocated": {total.Allocated.Blocks, total.Allocated.Bytes}, "freed": {total.Freed.Blocks, total.Freed.Bytes},
			"unfreed": {total.Live.Blocks, total.Live.Bytes}, "peak": {total.PeakBlocks, total.PeakBytes},
			"reserved": {total.Reserved.Blocks, total.Reserved.Bytes}, "internal": {total.Internal.Blocks, total.Internal.Bytes},
			"smallest size": {total.Smallest}, "largest size": {total.Largest},
		}
		seen := 0
		for _, m := range statistic.FindAllStringSubmatch(string(text), -1) {
			want := [2]uint64{}
			want[0], _ = strconv.ParseUint(m[2], 10, 64)
			want[1], _ = strconv.ParseUint(m[3], 10, 64)
			if g, ok := got[m[1]]; ok {
				seen++
				if g != want {
					t.Errorf("%s: %s: %v, mptrace says %v", name, m[1], g, want)
				}
			}
		}
		if seen != len(got) {
			t.Errorf("%s: %d of mptrace's figures compared", name, seen)
		}
		var most uint64
		for _, p := range tl.Points() {
			most = max(most, p.Bytes.Max)
		}
		if most != total.PeakBytes {
			t.Errorf("%s: the points lost the peak: %d, %d", name, most, total.PeakBytes)
		}
	}
}

// records opens a trace like a command.
func records(t *testing.T, path string) (*input, *processReader) {
	t.Helper()
	flags := inputFlags{}
	in, err := flags.open(t.Context(), cli.Streams{Err: io.Discard}, "test", []string{path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	process := processFlags{number: 1}
	src, err := process.reader(in)
	if err != nil {
		t.Fatal(err)
	}
	return in, src
}

// The window of mptrace, in a screenshot of it with cc1, has the same blocks at the same
// places: 8 bytes per pixel, 512 pixels per row, from 0x266000 on.
func TestHeapmapAsMptrace(t *testing.T) {
	corpus := os.Getenv("RTRACE_CORPUS")
	if corpus == "" {
		t.Skip("the trace of cc1 may not be part of the project; set RTRACE_CORPUS to the folder that has mpatrol/samples-1.3.0")
	}
	_, src := records(t, filepath.Join(corpus, "mpatrol/samples-1.3.0/cc1.trace"))
	m := heapmap.New(heapmap.Options{})
	var rec trace.Record
	for {
		if err := src.ReadRecord(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		m.Add(&rec)
	}
	f, err := os.Open(filepath.Join(corpus, "mpatrol/real/gui-cc1.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	window, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	// The map begins after the window's border of two pixels; the scroll bars hide its last
	// row and column.
	cells := m.Paint(heapmap.Grid{Base: 0x266000, CellBytes: 8, Cells: 512 * 510}, m.Events())
	wrong := map[string]int{}
	for i, c := range cells {
		x, y := i%512, i/512
		if x == 511 {
			continue
		}
		if got, want := colour(window, x+2, y+2), mptraceColour(c); got != want {
			wrong[want+", in the window "+got]++
		}
	}
	if len(wrong) > 0 {
		t.Errorf("cells that differ: %v", wrong)
	}
}

func colour(m image.Image, x, y int) string {
	c := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA)
	return fmt.Sprintf("%02x%02x%02x", c.R, c.G, c.B)
}

// mptraceColour returns the colour of a state in mptrace. Freed memory is white there, like
// memory that was never used.
func mptraceColour(c heapmap.Cell) string {
	switch {
	case c >= heapmap.Used:
		return "000000"
	case c == heapmap.Internal:
		return "ff0000"
	case c == heapmap.Unknown:
		return "0000ff"
	}
	return "ffffff"
}

// Every output of both commands for a real trace is of its kind and has the same peak.
func TestPictureCommands(t *testing.T) {
	const path = mpatrolCorpus + "/real/manyfn.trace"
	dir := t.TempDir()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"timeline", "-o", "t.svg"}, "peak 115 KiB after event 833"},
		{[]string{"timeline", "-o", "t.csv", "--points", "3"}, "501,1000,0,24355,117707,66284,133,319,133,196608,314,112632,336,70622"},
		{[]string{"timeline", "-o", "t.txt"}, "peak:       117707 bytes after event 833; 319 blocks after event 680"},
		{[]string{"timeline", "-o", "l.txt", "--lifetimes"}, "to the end            48   7.07  27777  14.74"},
		{[]string{"timeline", "-o", "f.txt", "--by", "function", "--top", "1"}, "     2   2174  1.85   2174       2   2174       1   1087  grow_141"},
		{[]string{"timeline", "-o", "h.txt", "--by", "thread"}, "   145  60921  51.76  63333     450  122700      30  18015  139887017727680"},
		{[]string{"heapmap", "-o", "m.svg"}, "after event 1,085 of 1,085: 27.1 KiB live in 48 blocks"},
		{[]string{"heapmap", "-o", "p.svg", "--at", "peak"}, "after event 833 of 1,085 (peak): 115 KiB live in 299 blocks"},
		{[]string{"heapmap", "-o", "e.svg", "--at", "1", "--base", "0x1ba5e000", "--space", "8K"}, "after event 1 of 1,085: 21 B live in 1 block"},
		{[]string{"heapmap", "-o", "m.html"}, "Memory map of manyfn.trace"},
	} {
		out := filepath.Join(dir, tt.args[2])
		args := append([]string(nil), tt.args...)
		args[2] = out
		if code, stdout, errOut := try(cli.Streams{}, append(args, path)...); code != cli.OK || stdout != "" || errOut != "" {
			t.Errorf("%v: exit code %d, %q, %q", tt.args, code, stdout, errOut)
			continue
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), tt.want) {
			t.Errorf("%v: no %q in\n%.3000s", tt.args, tt.want, data)
		}
		switch filepath.Ext(out) {
		case ".svg":
			wellFormed(t, tt.args, data)
		case ".csv":
			if rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll(); err != nil || len(rows) != 4 {
				t.Errorf("%v: %d rows, %v", tt.args, len(rows), err)
			}
		}
	}
}

func wellFormed(t *testing.T, args []string, data []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%v: %v", args, err)
			return
		}
	}
}
