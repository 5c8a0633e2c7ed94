package topview

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// detail returns all lines about a row, with short frames if they have more columns.
func (l *listing) detail(r *Row, columns int) []Line {
	lines := []Line{{Text: r.label(), Style: Title}}
	add := func(format string, args ...any) { lines = append(lines, Line{Text: fmt.Sprintf(format, args...)}) }
	if r.Place.Library != "" {
		add("in %s", r.Place.Library)
	}
	if text := l.suspects.verdict(r); text != "" {
		add("suspect    %s", text)
	}
	if l.query.mark != nil {
		add("since the mark %s in %s blocks", signed(float64(r.Since.Bytes)), signedCount(r.Since.Blocks))
	}
	add("live       %s in %d blocks", Bytes(r.Live.Bytes), r.Live.Blocks)
	if r.Unknown.Blocks > 0 {
		add("unknown    %s in %d blocks: they may have been freed in a pause", Bytes(r.Unknown.Bytes), r.Unknown.Blocks)
	}
	add("allocated  %s in %d blocks", Bytes(r.Allocated.Bytes), r.Allocated.Blocks)
	if len(r.Sites) > 0 {
		add("freed      %s in %d blocks", Bytes(r.Freed.Bytes), r.Freed.Blocks)
	}
	add("growth     %s/s over the last minute", signed(r.Growth))
	add("allocates  %s/s in %s calls/s", bytesOf(r.Rate), Count(r.Calls))
	if r.Oldest >= 0 {
		add("the oldest live block is %s old", clock(time.Duration(l.snapshot.Time-r.Oldest)))
	}
	if len(r.Sites) == 0 {
		return lines
	}
	n := l.largest(r.Sites)
	if len(r.Sites) > 1 {
		lines = append(lines, Line{}, Line{Text: fmt.Sprintf("%d stacks; the one with most live bytes:", len(r.Sites)), Style: Heading})
	}
	p, ok := l.source.Place(n)
	lines = append(lines, Line{}, Line{Text: "stack, the innermost frame first", Style: Heading})
	if !ok {
		add("  %s", naming)
	}
	p = p.safe()
	for _, frame := range p.Stack {
		text := "  " + frame
		if width(text) > columns {
			text = "  " + withoutFolders(frame)
		}
		lines = append(lines, Line{Text: text})
	}
	return append(lines, l.figures(n)...)
}

// withoutFolders returns a frame with the name of its library instead of the path.
func withoutFolders(frame string) string {
	const from = " from /"
	at := strings.LastIndex(frame, from)
	if at < 0 {
		return frame
	}
	at += len(from) - 1
	return frame[:at] + path.Base(frame[at:])
}

// largest returns the call site with most live bytes.
func (l *listing) largest(sites []int) int {
	best := sites[0]
	for _, n := range sites {
		if l.snapshot.Sites[n].Live.Above(l.snapshot.Sites[best].Live) {
			best = n
		}
	}
	return best
}

// figures returns the lines about sizes, lifetimes and threads of a call site.
func (l *listing) figures(site int) (lines []Line) {
	d := l.source.Detail(site)
	add := func(format string, args ...any) { lines = append(lines, Line{Text: fmt.Sprintf(format, args...)}) }
	head := func(text string) { lines = append(lines, Line{}, Line{Text: text, Style: Heading}) }
	head("sizes")
	for _, z := range d.Sizes {
		if z.Allocated.Blocks > 0 {
			text := fmt.Sprintf("%d B", z.From)
			if z.From != z.To {
				text = exact(z.From) + " to below " + exact(z.To+1)
			}
			add("  %-26s %8d blocks, %d live", text, z.Allocated.Blocks, z.Live.Blocks)
		}
	}
	head("lifetimes of freed blocks")
	for _, x := range d.Lifetimes {
		if x.Blocks > 0 {
			add("  up to %-20s %8d blocks", time.Duration(x.To).Round(roundTo(x.To)), x.Blocks)
		}
	}
	if len(d.Lifetimes) == 0 {
		add("  none was freed")
	}
	head("threads")
	for _, t := range d.Threads {
		name := fmt.Sprintf("thread %d", t.TID)
		if t.Others {
			name = "other threads"
		}
		add("  %-26s %8d blocks, %s live", name, t.Allocated.Blocks, Bytes(t.Live.Bytes))
	}
	return lines
}

// roundTo returns how exactly a time is shown.
func roundTo(ns uint64) time.Duration {
	unit := time.Duration(1)
	for ns >= 10_000 {
		ns, unit = ns/10, unit*10
	}
	return unit
}
