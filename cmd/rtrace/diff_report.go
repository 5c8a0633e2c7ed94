package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/usage"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/table"
)

// diffReport is the output of 'rtrace diff'.
type diffReport struct {
	options *diffOptions
	rows    map[string]*diffRow // by their printed text
	total   diffRow
	unknown [2]live.Amount // unknown blocks, before and after
	lasted  [2]int64       // ns from the first call to the compared moment; 0 if not known
	moments bool           // both moments are of one trace
	byName  bool           // lines do not count, so that traces of two versions of a program match
	running bool           // a recording freed earlier blocks: the process was running
	hints   hints
}

// diffRow is a group, or all groups, before and after.
type diffRow struct {
	texts         []string
	frames        []sites.Frame // with --by stack
	identity      groupIdentity
	before, after live.Amount
}

// grown returns the growth of the group; it is negative if it shrank.
func (d *diffRow) grown() (blocks, bytes int64) {
	return int64(d.after.Blocks - d.before.Blocks), int64(d.after.Bytes - d.before.Bytes)
}

// figure is the compared amount of a group.
func (r *diffReport) figure(u usage.Usage) live.Amount {
	if r.options.allocated {
		return u.Allocated
	}
	return u.Live
}

// before adds the first trace, after adds the second one, and both adds the moments of a
// single trace.
func (r *diffReport) before(t *tally) {
	r.total.before = r.figure(t.counter.Total())
	r.unknown[0], r.lasted[0] = t.counter.Total().Unknown, t.calls.stats.last-t.calls.stats.first
	r.running = r.running || t.counter.Unmatched() > 0
	for n := range t.counter.Len() {
		r.row(t, n).before.Add(r.figure(t.counter.Of(n)))
	}
}

func (r *diffReport) after(t *tally) {
	r.total.after = r.figure(t.counter.Total())
	r.unknown[1], r.lasted[1] = t.counter.Total().Unknown, t.calls.stats.last-t.calls.stats.first
	r.running = r.running || t.counter.Unmatched() > 0
	for n := range t.counter.Len() {
		r.row(t, n).after.Add(r.figure(t.counter.Of(n)))
	}
}

func (r *diffReport) both(t *tally) {
	r.after(t)
	r.moments = true
	if r.options.window.from == "" {
		return // compared with the beginning, when nothing was live
	}
	r.total.before = r.figure(t.total)
	r.unknown[0], r.lasted[0] = t.total.Unknown, t.started-t.calls.stats.first
	for n, u := range t.before {
		r.row(t, n).before.Add(r.figure(u))
	}
}

// row returns the row of a group. A group of the other trace has the same row if both print
// the same text, except for the folders of modules.
func (r *diffReport) row(t *tally, n int) *diffRow {
	g := t.groups.At(n)
	texts := t.texts(g)
	if t.key == sites.ByThread {
		texts = []string{t.threadName(g)}
	}
	key := strings.Join(texts, "\n")
	if len(g.Frames) > 0 {
		var whole strings.Builder
		for _, f := range g.Frames {
			if f.Module != "" {
				f.Module = "/" + path.Base(f.Module)
			}
			if r.byName {
				f.ToFunction()
			}
			fmt.Fprintln(&whole, f.Address(), f)
		}
		key = whole.String()
	}
	d := r.rows[key]
	if d == nil {
		d = &diffRow{texts: texts, frames: g.Frames, identity: t.identity(g)}
		r.rows[key] = d
	}
	return d
}

// threadName returns the name of a thread, which several threads may share, also in another
// run. Without a name it returns the id.
func (x *groupTexts) threadName(g *sites.Group) string {
	if name := x.stats.threads[threadKey{g.PID, g.TID}]; name != "" {
		return sites.Printable(name)
	}
	if g.TID != 0 && g.TID == g.PID {
		return "main"
	}
	return x.thread(g.PID, g.TID, g.Thread)
}

// faster returns the growth of a group in bytes per second.
func (r *diffReport) faster(d *diffRow) float64 {
	return r.rate(d.after, 1).Bytes - r.rate(d.before, 0).Bytes
}

// sorted returns the rows with a difference, those that grew most first, and the sums of the
// rows that --top leaves out. If rates are compared, those that grew faster are first.
func (r *diffReport) sorted() (rows []*diffRow, more int, rest diffRow) {
	for _, d := range r.rows {
		if d.before != d.after {
			rows = append(rows, d)
		}
	}
	rated := r.rated()
	slices.SortFunc(rows, func(a, b *diffRow) int {
		aBlocks, aBytes := a.grown()
		bBlocks, bBytes := b.grown()
		if rated {
			return cmp.Or(cmp.Compare(r.faster(b), r.faster(a)), slices.Compare(a.texts, b.texts))
		}
		return cmp.Or(cmp.Compare(bBytes, aBytes), cmp.Compare(bBlocks, aBlocks), slices.Compare(a.texts, b.texts))
	})
	if top := r.options.top; top > 0 && top < len(rows) {
		for _, d := range rows[top:] {
			rest.before.Add(d.before)
			rest.after.Add(d.after)
		}
		return rows[:top], len(rows) - top, rest
	}
	return rows, 0, rest
}

func (r *diffReport) write(w io.Writer) error {
	if r.options.json {
		return writeJSON(w, r.object())
	}
	return r.print(w)
}

// rated reports whether rates are compared: for two traces of a running process whose
// lengths differ by more than a tenth of the longer one. For whole runs of a program, rates
// mean nothing.
func (r *diffReport) rated() bool {
	least, most := min(r.lasted[0], r.lasted[1]), max(r.lasted[0], r.lasted[1])
	return !r.moments && r.running && least > 0 && most-least > most/10
}

// rate is an amount per second of the trace, before or after.
func (r *diffReport) rate(a live.Amount, after int) diffRate {
	s := float64(r.lasted[after]) / 1e9
	return diffRate{float64(a.Blocks) / s, float64(a.Bytes) / s}
}

// heading returns the line that names what is compared.
func (r *diffReport) heading() string {
	const without = "; earlier blocks are not included"
	switch {
	case r.options.allocated && r.moments:
		return "compared: all blocks allocated in the recording up to each moment, freed or not"
	case r.options.allocated:
		return "compared: all blocks allocated in each recording, freed or not"
	case r.moments:
		return "compared: blocks allocated in the recording and live at each moment" + without
	case r.options.window.to != "":
		return "compared: blocks allocated in each recording and live at --to" + without
	}
	return "compared: blocks allocated in each recording and still live at its end" + without
}

// in returns how long a recording lasted up to its moment.
func (r *diffReport) in(after int) string {
	switch d := r.lasted[after]; {
	case d <= 0:
		return ""
	case r.moments:
		return ", " + seconds(d) + " s after the first call"
	default:
		return ", in " + seconds(d) + " s"
	}
}

// unknownLine returns the line about unknown blocks. It is empty if there are none, or if
// they do not matter.
func (r *diffReport) unknownLine(when string, u live.Amount) string {
	if u.Blocks == 0 || r.options.allocated {
		return ""
	}
	return fmt.Sprintf("unknown %s: %s (%s), live when the recording had a gap, in which frees were not recorded\n", when, plural(u.Blocks, "block"), plural(u.Bytes, "byte"))
}

// print writes the report as text.
func (r *diffReport) print(w io.Writer) error {
	what := "live"
	if r.options.allocated {
		what = "allocated"
	}
	blocks, bytes := r.total.grown()
	lines := fmt.Sprintf("%s\n%s before: %s (%s)%s\n%s after: %s (%s)%s\ndifference: %s in blocks, %s in bytes\n", r.heading(),
		what, plural(r.total.before.Blocks, "block"), plural(r.total.before.Bytes, "byte"), r.in(0),
		what, plural(r.total.after.Blocks, "block"), plural(r.total.after.Bytes, "byte"), r.in(1), signed(blocks), signed(bytes))
	rated := r.rated()
	if rated {
		before, after := r.rate(r.total.before, 0), r.rate(r.total.after, 1)
		lines += fmt.Sprintf("per second: %.1f blocks (%.1f bytes) before, %.1f blocks (%.1f bytes) after; the recordings differ in length, so compare these\n",
			before.Blocks, before.Bytes, after.Blocks, after.Bytes)
	}
	lines += r.unknownLine("before", r.unknown[0]) + r.unknownLine("after", r.unknown[1])
	rows, more, rest := r.sorted()
	if _, err := io.WriteString(w, lines); err != nil || len(rows) == 0 {
		return err
	}
	columns := []table.Column{{Title: "bytes"}, {Title: "blocks"}, {Title: "before"}, {Title: "after"}}
	if rated {
		columns = append(columns, table.Column{Title: "before/s"}, table.Column{Title: "after/s"})
	}
	t := table.New(append(columns, table.Column{Title: r.options.key.String(), Left: true})...)
	row := func(d *diffRow, text string) {
		blocks, bytes := d.grown()
		cells := []string{signed(bytes), signed(blocks), number(d.before.Bytes), number(d.after.Bytes)}
		if rated {
			cells = append(cells, fmt.Sprintf("%.1f", r.rate(d.before, 0).Bytes), fmt.Sprintf("%.1f", r.rate(d.after, 1).Bytes))
		}
		t.Row(append(cells, text)...)
	}
	spaced := slices.ContainsFunc(rows, func(d *diffRow) bool { return len(d.texts) > 1 })
	for i, d := range rows {
		if spaced && i > 0 {
			t.Blank()
		}
		for n, text := range d.texts {
			if n == 0 {
				row(d, text)
			} else {
				t.Row(append(make([]string, len(columns)), text)...)
			}
		}
	}
	if more > 0 {
		if spaced {
			t.Blank()
		}
		row(&rest, "in "+plural(uint64(more), "other group"))
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	_, err := t.WriteTo(w)
	return err
}

// signed returns a number with its sign.
func signed(n int64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%+d", n)
}
