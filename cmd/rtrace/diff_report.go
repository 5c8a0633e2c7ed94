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
	"rtrace-bpf/internal/report/table"
)

// diffReport is what 'rtrace diff' prints.
type diffReport struct {
	options *diffOptions
	rows    map[string]*diffRow // by what is printed of them
	total   diffRow
}

// diffRow is a group, or all of them, before and after.
type diffRow struct {
	texts         []string
	identity      groupIdentity
	before, after usage.Amount
}

// grown is by how much the group grew; it is negative if it shrank.
func (d *diffRow) grown() (blocks, bytes int64) {
	return int64(d.after.Blocks - d.before.Blocks), int64(d.after.Bytes - d.before.Bytes)
}

// figure is what is compared of a group.
func (r *diffReport) figure(u usage.Usage) usage.Amount {
	if r.options.allocated {
		return u.Allocated
	}
	return u.Live
}

// before takes the first trace, after the second one, both one that is compared
// with an earlier moment of itself.
func (r *diffReport) before(t *tally) {
	r.total.before = r.figure(t.counter.Total())
	for n := range t.counter.Len() {
		add(&r.row(t, n).before, r.figure(t.counter.Of(n)))
	}
}

func (r *diffReport) after(t *tally) {
	r.total.after = r.figure(t.counter.Total())
	for n := range t.counter.Len() {
		add(&r.row(t, n).after, r.figure(t.counter.Of(n)))
	}
}

func (r *diffReport) both(t *tally) {
	r.after(t)
	if r.options.window.from == "" {
		return // with the beginning, when there was nothing
	}
	r.total.before = r.figure(t.total)
	for n, u := range t.before {
		add(&r.row(t, n).before, r.figure(u))
	}
}

func add(to *usage.Amount, a usage.Amount) {
	to.Blocks += a.Blocks
	to.Bytes += a.Bytes
}

// row returns the row of a group. It is that of another trace's group if both
// read the same but for the folders that modules are in.
func (r *diffReport) row(t *tally, n int) *diffRow {
	g := t.groups.At(n)
	texts := t.texts(g)
	if t.key == sites.ByThread {
		texts = []string{t.threadName(g)}
	}
	key := strings.Join(texts, "\n")
	if len(g.Frames) > 0 {
		without := sites.Group{Frames: slices.Clone(g.Frames)}
		for i := range without.Frames {
			if f := &without.Frames[i]; f.Module != "" {
				f.Module = "/" + path.Base(f.Module)
			}
		}
		key = strings.Join(t.texts(&without), "\n")
	}
	d := r.rows[key]
	if d == nil {
		d = &diffRow{texts: texts, identity: t.identity(g)}
		r.rows[key] = d
	}
	return d
}

// threadName is the name of a thread, which may be that of several, or of one in
// another run. Without a name it is the id.
func (x *groupTexts) threadName(g *sites.Group) string {
	if name := x.stats.threads[threadKey{g.PID, g.TID}]; name != "" {
		return sites.Printable(name)
	}
	if g.TID != 0 && g.TID == g.PID {
		return "main"
	}
	return x.thread(g.PID, g.TID, g.Thread)
}

// sorted returns the rows with a difference, those that grew most first, and
// what those have that --top leaves out.
func (r *diffReport) sorted() (rows []*diffRow, more int, rest diffRow) {
	for _, d := range r.rows {
		if d.before != d.after {
			rows = append(rows, d)
		}
	}
	slices.SortFunc(rows, func(a, b *diffRow) int {
		aBlocks, aBytes := a.grown()
		bBlocks, bBytes := b.grown()
		return cmp.Or(cmp.Compare(bBytes, aBytes), cmp.Compare(bBlocks, aBlocks), slices.Compare(a.texts, b.texts))
	})
	if top := r.options.top; top > 0 && top < len(rows) {
		for _, d := range rows[top:] {
			add(&rest.before, d.before)
			add(&rest.after, d.after)
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

// print writes the report as text.
func (r *diffReport) print(w io.Writer) error {
	what := "live"
	if r.options.allocated {
		what = "allocated"
	}
	blocks, bytes := r.total.grown()
	_, err := fmt.Fprintf(w, "%s before: %s (%s)\n%s after: %s (%s)\ndifference: %s in blocks, %s in bytes\n",
		what, plural(r.total.before.Blocks, "block"), plural(r.total.before.Bytes, "byte"),
		what, plural(r.total.after.Blocks, "block"), plural(r.total.after.Bytes, "byte"), signed(blocks), signed(bytes))
	rows, more, rest := r.sorted()
	if err != nil || len(rows) == 0 {
		return err
	}
	t := table.New(table.Column{Title: "bytes"}, table.Column{Title: "blocks"}, table.Column{Title: "before"}, table.Column{Title: "after"},
		table.Column{Title: r.options.key.String(), Left: true})
	row := func(d *diffRow, text string) {
		blocks, bytes := d.grown()
		t.Row(signed(bytes), signed(blocks), number(d.before.Bytes), number(d.after.Bytes), text)
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
				t.Row("", "", "", "", text)
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
	_, err = t.WriteTo(w)
	return err
}

// signed is a number with its sign.
func signed(n int64) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%+d", n)
}
