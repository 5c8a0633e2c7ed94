package explain

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"rtrace-bpf/internal/heap"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/table"
)

// View is which parts of a document are printed as text.
type View struct {
	Rows  int  // at most this many; 0 for all
	Parts bool // also the largest parts of each row, and arenas with their holes
	Width int  // of the terminal, at which sentences wrap; 0 for no limit
}

// WriteText prints a document: the verdicts, the rows, and the details that the view selects.
// Nothing in it can affect a terminal.
func (d *Document) WriteText(w io.Writer, v View) error {
	t := text{d: d, view: v}
	t.head()
	t.verdicts()
	t.rows()
	if d.Heap != nil {
		t.heap()
	}
	if d.Drift != nil {
		t.drift()
	}
	for _, n := range d.Notes {
		t.sentence("note: ", n)
	}
	_, err := w.Write([]byte(printable.Text(t.out.String())))
	return err
}

// text is the text of one document.
type text struct {
	d    *Document
	view View
	out  bytes.Buffer
}

// sentence prints a paragraph after a mark, with further lines indented below it.
func (t *text) sentence(mark, s string) {
	indent := strings.Repeat(" ", len(mark))
	line := mark
	for i, word := range strings.Fields(s) {
		switch {
		case i == 0:
			line += word
		case t.view.Width > 0 && len(line)+1+len(word) > t.view.Width:
			fmt.Fprintln(&t.out, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(&t.out, line)
}

// name returns a name of the process on one line.
func name(s string) string { return printable.Name(s) }

func (t *text) head() {
	p := t.d.Process
	threads := "1 thread"
	if p.Threads != 1 {
		threads = figure.Count(uint64(p.Threads)) + " threads"
	}
	s := fmt.Sprintf("process %d (%s), %s, RSS %s", p.PID, name(p.Name), threads, figure.Bytes(t.d.Resident))
	const much = 10 << 20 // bytes in other processes; less is not worth a word
	if p := t.d.Proportional; p > 0 && p+much < t.d.Resident {
		s += fmt.Sprintf(" (PSS %s: other processes share the rest)", figure.Bytes(p))
	}
	if t.d.Swap > 0 {
		s += fmt.Sprintf(", and %s swapped out", figure.Bytes(t.d.Swap))
	}
	t.sentence("", s)
}

func (t *text) verdicts() {
	for _, v := range t.d.Verdicts {
		t.sentence("* ", name(v.Text))
		t.sentence("  > ", name(v.Advice))
	}
	fmt.Fprintln(&t.out)
}

func (t *text) rows() {
	columns := []table.Column{{Title: "resident", Width: 10}, {Title: "share"}, {Title: "size"}}
	if t.swapped() {
		columns = append(columns, table.Column{Title: "swap"})
	}
	list := table.New(append(columns, table.Column{Title: "count"}, table.Column{Title: "what", Left: true})...)
	shown := t.d.Rows
	if t.view.Rows > 0 && len(shown) > t.view.Rows {
		shown = shown[:t.view.Rows]
	}
	for _, r := range shown {
		what := name(r.What)
		if r.Likely {
			what += " (likely)"
		}
		t.row(list, figure.Bytes(r.Swap), figure.Bytes(r.Resident), t.percent(r.Resident), figure.Bytes(r.Size), figure.Count(r.Count), what)
		if t.view.Parts {
			t.parts(list, r)
		}
	}
	if rest := t.d.Rows[len(shown):]; len(rest) > 0 {
		var n, swap uint64
		for _, r := range rest {
			n += r.Resident
			swap += r.Swap
		}
		what := "in another row (--all)"
		if len(rest) > 1 {
			what = fmt.Sprintf("in %d other rows (--all)", len(rest))
		}
		t.row(list, figure.Bytes(swap), figure.Bytes(n), t.percent(n), "", "", what)
	}
	t.row(list, figure.Bytes(t.d.Swap), figure.Bytes(t.d.Sum), t.percent(t.d.Sum), "", "", "sum; the kernel counts "+figure.Bytes(t.d.Resident))
	_, _ = list.WriteTo(&t.out) // a buffer takes everything
	for _, o := range []struct {
		bytes uint64
		what  string
	}{
		{t.d.Swap, "swapped out, not part of RSS"},
		{t.d.Hugetlb, "in pages of hugetlbfs, not part of RSS"},
		{t.huge(), "of the rows in transparent huge pages"},
	} {
		if o.bytes > 0 {
			t.sentence("", figure.Bytes(o.bytes)+" "+o.what)
		}
	}
}

// swapped reports whether the rows have a column of memory that is swapped out.
func (t *text) swapped() bool { return t.d.Swap > 0 }

// row adds a row with the other cells of a row without swap.
func (t *text) row(list *table.Table, swap string, cells ...string) {
	if t.swapped() {
		const column = 3
		cells = slices.Insert(cells, column, swap)
	}
	list.Row(cells...)
}

func (t *text) huge() (n uint64) {
	for _, r := range t.d.Rows {
		n += r.Huge
	}
	return n
}

func (t *text) percent(n uint64) string { return figure.Percent(part(n, t.d.Resident)) }

func (t *text) parts(list *table.Table, r Row) {
	for _, p := range r.Parts {
		t.row(list, "", figure.Bytes(p.Resident), "", "", "", "  "+name(p.Name))
	}
	if r.More > 0 {
		t.row(list, "", "", "", "", "", fmt.Sprintf("  and %d more", r.More))
	}
}

// listed is how many arenas and holes are printed.
const listed = 10

func (t *text) heap() {
	h := t.d.Heap
	fmt.Fprintln(&t.out)
	if len(h.Arenas) == 0 {
		t.sentence("malloc: ", name(h.Why))
		return
	}
	var system uint64
	for _, a := range h.Arenas {
		system += a.System
	}
	arenas := "1 arena"
	if len(h.Arenas) != 1 {
		arenas = figure.Count(uint64(len(h.Arenas))) + " arenas"
	}
	s := fmt.Sprintf("%s with %s", arenas, figure.Bytes(system))
	if h.Mapped.Blocks > 0 {
		s += fmt.Sprintf("; %s in live blocks with mappings of their own (%s)", figure.Bytes(h.Mapped.Bytes), figure.Count(h.Mapped.Blocks))
	}
	if h.ThreadCaches > 0 {
		s += fmt.Sprintf("; freed blocks in the caches of threads (%s)", figure.Count(uint64(h.ThreadCaches)))
	}
	t.sentence("malloc: ", s)
	if h.Why != "" {
		t.sentence("malloc: ", name(h.Why))
	}
	if h.Check != nil {
		t.check(h.Check)
	}
	if t.view.Parts {
		t.arenas()
	}
}

func (t *text) check(c *heap.Check) {
	switch {
	case c.Why != "":
		t.sentence("check: ", name(c.Why))
		return
	case c.System+c.WalkedSystem == 0:
		return
	}
	t.sentence("check: ", fmt.Sprintf("the C library's own lists, by its debugging symbols, have %s free of %s; by its blocks it is %s of %s",
		figure.Bytes(c.Free), figure.Bytes(c.System), figure.Bytes(c.WalkedFree), figure.Bytes(c.WalkedSystem)))
}

func (t *text) arenas() {
	list := table.New(table.Column{Title: "arena", Left: true}, table.Column{Title: "heaps"}, table.Column{Title: "system"},
		table.Column{Title: "live"}, table.Column{Title: "free"}, table.Column{Title: "cached"}, table.Column{Title: "fast"},
		table.Column{Title: "top"}, table.Column{Title: "unread"})
	arenas := t.d.Heap.Arenas
	for _, a := range arenas[:min(len(arenas), listed)] {
		title := fmt.Sprintf("%#x", a.Address)
		if a.Main {
			title = "main"
		}
		list.Row(title, fmt.Sprint(a.Heaps), figure.Bytes(a.System), figure.Bytes(a.Live.Bytes), figure.Bytes(a.Free.Bytes),
			figure.Bytes(a.Cached.Bytes), figure.Bytes(a.Fast.Bytes), figure.Bytes(a.Top.Bytes), figure.Bytes(a.Unread.Bytes))
	}
	_, _ = list.WriteTo(&t.out) // a buffer takes everything
	if n := len(arenas) - listed; n > 0 {
		fmt.Fprintf(&t.out, "and %d more arenas\n", n)
	}
	t.holes()
}

// worth is the size of the smallest hole that is printed, in bytes.
const worth = 64 << 10

// holes prints the largest holes of all arenas.
func (t *text) holes() {
	var all []heap.Hole
	for _, a := range t.d.Heap.Arenas {
		all = append(all, a.Holes...)
	}
	slices.SortStableFunc(all, func(a, b heap.Hole) int { return cmp.Compare(b.Bytes, a.Bytes) })
	for _, h := range all[:min(len(all), listed)] {
		if h.Bytes < worth {
			return
		}
		t.sentence("hole: ", fmt.Sprintf("%s at %#x, %s resident; above it a block of %s, and %s in %s live blocks in all",
			figure.Bytes(h.Bytes), h.Address, figure.Bytes(h.Resident), figure.Bytes(h.Next), figure.Bytes(h.Above.Bytes), figure.Count(h.Above.Blocks)))
	}
}

func (t *text) drift() {
	d := t.d.Drift
	if len(d.Rows) == 0 && d.Resident == 0 {
		t.sentence("drift: ", fmt.Sprintf("nothing changed between two readings, %.2f s apart", d.Seconds))
		return
	}
	changes := []string{"RSS " + signed(d.Resident)}
	const shown = 3
	for _, c := range d.Rows[:min(len(d.Rows), shown)] {
		changes = append(changes, fmt.Sprintf("%s: resident %s, size %s", c.What, signed(c.Resident), signed(c.Size)))
	}
	if n := len(d.Rows) - shown; n > 0 {
		changes = append(changes, fmt.Sprintf("smaller changes: %d", n))
	}
	t.sentence("drift: ", name(fmt.Sprintf("in the %.2f s between two readings: %s", d.Seconds, strings.Join(changes, "; "))))
}

// signed formats a change of a size.
func signed(n int64) string {
	if n < 0 {
		return "-" + figure.Bytes(magnitude(n))
	}
	return "+" + figure.Bytes(uint64(n))
}
