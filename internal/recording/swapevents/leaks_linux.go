package swapevents

import (
	"bufio"
	"fmt"
	"io"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/record"
)

// Leaks are the blocks that were not freed when the recording of a process ended.
type Leaks struct {
	PID    int
	Name   string // of the process
	Stats  record.Stats
	Losses string // the kinds of lost events with their counts; empty for none
	Sites  []record.LiveSite
	Frame  func(addr uint64) string // the name of a frame
}

// maxLeakSites is how many call sites a report has the stacks of.
const maxLeakSites = 1000

// Write writes the report as a text.
func (l *Leaks) Write(to io.Writer) error {
	w := bufio.NewWriter(to)
	l.print(w)
	return w.Flush()
}

// print writes the text. Flush returns its errors.
func (l *Leaks) print(w *bufio.Writer) {
	stats := &l.Stats
	fmt.Fprintf(w, "Not freed when the recording of process %d (%s) ended: %d blocks, %d bytes.\n",
		l.PID, printable.Name(l.Name), stats.LiveBlocks, stats.LiveBytes)
	fmt.Fprint(w, "They were allocated during the recording. The program may still use them.\n")
	if l.Losses != "" {
		fmt.Fprintf(w, "Events were lost (%s): some of these blocks may have been freed, and others are missing.\n", l.Losses)
	}
	if stats.UnknownBlocks > 0 {
		fmt.Fprintf(w, "Not among them are %d blocks, %d bytes, that were live when nothing was recorded for a while: they may have been freed then.\n", stats.UnknownBlocks, stats.UnknownBytes)
	}
	for i, site := range l.Sites {
		if i == maxLeakSites {
			fmt.Fprintf(w, "\n%d more call sites with fewer bytes each are left out.\n", len(l.Sites)-i)
			return
		}
		fmt.Fprintf(w, "\n%d bytes in %d blocks from\n", site.Bytes, site.Blocks)
		if len(site.Frames) == 0 {
			fmt.Fprint(w, "    no stack was recorded\n")
		}
		for _, addr := range site.Frames {
			fmt.Fprintf(w, "    %#x %s\n", addr, printable.Name(l.Frame(addr)))
		}
	}
}
