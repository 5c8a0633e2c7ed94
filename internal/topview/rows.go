package topview

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/live"
)

// Row is the figures of calls that have something in common.
type Row struct {
	Text      string // what they have in common, safe for a terminal
	Place     Place  // of a site, or of its function, file or library; empty for others
	Sites     []int  // numbers of the call sites; empty for threads and sizes
	Live      live.Amount
	Unknown   live.Amount
	Allocated live.Amount
	Freed     live.Amount
	Oldest    int64   // when the oldest live block was allocated, in nanoseconds since the first call; -1 if there is none or it is not known
	Growth    float64 // change of live bytes per second, over the last minute
	Rate      float64 // allocated bytes per second, in the last interval
	Calls     float64 // allocations per second, in the last interval
	// Since is the change of the live bytes and blocks since the mark; 0 without one.
	Since Change

	key        key
	difference string // follows the text if other rows have the same one
	outside    int    // distance of the outermost frame in difference from the one of the text
}

// Change is a change of blocks and bytes.
type Change struct{ Blocks, Bytes int64 }

// naming is the text of rows whose names are not known yet.
const naming = "(reading symbols)"

// unknownPlace is the text of rows without a file or library.
const unknownPlace = "(unknown)"

// items returns the figures that the rows of a grouping are made of.
func items(s *Snapshot, by By, from Source) []item {
	if by != ByThread && by != BySize {
		all := make([]item, 0, len(s.Sites))
		for i := range s.Sites {
			x := &s.Sites[i]
			all = append(all, item{
				key: key{kind: BySite, n: int64(x.Number)}, site: x.Number, live: x.Live, allocated: x.Allocated, freed: x.Freed, unknown: x.Unknown, oldest: x.Oldest,
			})
		}
		return all
	}
	byKey := make(map[key]*item)
	var order []key
	at := func(k key) *item {
		x := byKey[k]
		if x == nil {
			x = &item{key: k, oldest: -1}
			byKey[k] = x
			order = append(order, k)
		}
		return x
	}
	for i := range s.Sites {
		site := &s.Sites[i]
		d := from.Detail(site.Number)
		if by == ByThread {
			for _, t := range d.Threads {
				k := key{kind: by, n: int64(t.TID), pid: site.PID}
				if t.Others {
					k.n = -1
				}
				x := at(k)
				x.others = t.Others
				x.live.Add(t.Live)
				x.allocated.Add(t.Allocated)
			}
			continue
		}
		for _, z := range d.Sizes {
			x := at(key{kind: by, n: int64(z.From)})
			x.from, x.to = z.From, z.To
			x.live.Add(z.Live)
			x.allocated.Add(z.Allocated)
		}
	}
	all := make([]item, len(order))
	for i, k := range order {
		all[i] = *byKey[k]
	}
	return all
}

// rowsOf returns the rows of items, without those that never had a block in them.
func (m *Model) rowsOf(all []item, allocated map[key]live.Amount) []Row {
	interval := m.history.interval().Seconds()
	rows := make([]Row, 0, len(all))
	index := make(map[string]int)
	for i := range all {
		x := &all[i]
		text, place := m.label(x)
		if m.hides(text, &place) {
			continue
		}
		n, known := len(rows), false
		if m.by != BySite { // two stacks may have the same text
			n, known = index[text]
		}
		if !known {
			n = len(rows)
			index[text] = n
			rows = append(rows, Row{Text: text, Place: place, Oldest: -1, key: x.key})
		}
		r := &rows[n]
		if x.kind == BySite {
			r.Sites = append(r.Sites, x.site)
		}
		r.add(x, allocated[x.key], interval)
		r.Growth += m.history.growth(x.key)
		if m.mark != nil {
			base := m.mark.of[x.key]
			r.Since.Blocks += int64(x.live.Blocks - base.live.Blocks)
			r.Since.Bytes += int64(x.live.Bytes - base.live.Bytes)
		}
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return m.unchanged(&r) })
	if m.by == BySite {
		distinguish(rows, m.now.Sites)
	}
	return rows
}

// add adds the figures of an item.
func (r *Row) add(x *item, allocated live.Amount, interval float64) {
	r.Live.Add(x.live)
	r.Unknown.Add(x.unknown)
	r.Allocated.Add(x.allocated)
	r.Freed.Add(x.freed)
	if x.oldest >= 0 && (r.Oldest < 0 || x.oldest < r.Oldest) {
		r.Oldest = x.oldest
	}
	if interval > 0 {
		r.Rate += float64(allocated.Bytes) / interval
		r.Calls += float64(allocated.Blocks) / interval
	}
}

// bars returns the live bytes of a row at the last refreshes, the last one is the newest.
func (m *Model) bars(r *Row) []uint64 {
	if len(r.Sites) == 0 {
		return m.history.values(r.key)
	}
	sum := make([]uint64, len(m.history.times))
	for _, n := range r.Sites {
		for i, v := range m.history.values(key{kind: BySite, n: int64(n)}) {
			sum[i] += v
		}
	}
	return sum
}

// unchanged reports whether nothing has happened in a row since the mark.
func (m *Model) unchanged(r *Row) bool {
	if m.mark == nil {
		return r.Allocated.Blocks == 0
	}
	if r.Since != (Change{}) {
		return false
	}
	var base live.Amount
	if len(r.Sites) == 0 {
		base = m.mark.of[r.key].allocated
	}
	for _, n := range r.Sites {
		base.Add(m.mark.of[key{kind: BySite, n: int64(n)}].allocated)
	}
	return r.Allocated == base
}

// label returns the text of the row that an item belongs to, and its place.
func (m *Model) label(x *item) (string, Place) {
	switch x.kind {
	case ByThread:
		switch {
		case x.others:
			return "other threads", Place{}
		case len(m.now.Processes) > 1:
			return fmt.Sprintf("thread %d of process %d", x.n, x.pid), Place{}
		}
		return fmt.Sprintf("thread %d", x.n), Place{}
	case BySize:
		if x.from == x.to {
			return fmt.Sprintf("%d B", x.from), Place{}
		}
		return exact(x.from) + " to below " + exact(x.to+1), Place{}
	}
	if l, ok := m.labels[x.site]; ok {
		return l.text, l.place
	}
	p, ok := m.source.Place(x.site)
	if !ok {
		return naming, Place{}
	}
	if m.labels == nil {
		m.labels = make(map[int]label)
	}
	text, place := m.siteLabel(x.site, p.safe())
	m.labels[x.site] = label{text, place}
	return text, place
}

// label is the text and the place of the row of a call site, which do not change as long as
// rows are made of the same things.
type label struct {
	text  string
	place Place
}

// siteLabel returns the text of the row that a call site belongs to, and its place. p is safe
// for a terminal.
func (m *Model) siteLabel(n int, p Place) (string, Place) {
	prefix := ""
	if site := &m.now.Sites[n]; m.now.Resources[site.Resource].Type != aggregate.Memory {
		prefix = m.now.Resources[site.Resource].Type + ": "
	}
	switch m.by {
	case ByFunction:
		return prefix + p.Function, Place{Function: p.Function}
	case ByFile:
		return prefix + cmp.Or(p.File, unknownPlace), Place{File: p.File}
	case ByLibrary:
		return prefix + cmp.Or(p.Library, unknownPlace), Place{Library: p.Library}
	}
	text := prefix + p.Function
	if p.File != "" {
		text += fmt.Sprintf(" (%s:%d)", path.Base(p.File), p.Line)
	}
	return text, p
}

// fit returns the text of a row in a number of columns, with as many callers as fit.
func (r *Row) fit(room int) string {
	if r.difference != "" {
		if left := room - width(r.difference); left >= leastCaller || width(r.Text) <= left {
			text := shorten(r.Text, left) + r.difference
			if r.outside > 0 {
				return text
			}
			return r.withCallers(text, room)
		}
		return shorten(r.label(), room)
	}
	text := shorten(r.Text, room)
	if width(r.Text) > room && strings.HasPrefix(r.Text, "/") && room > 1 {
		text = gap + tail(r.Text, room-1) // the end of a path distinguishes it
	}
	return r.withCallers(text, room)
}

// withCallers adds as many callers as fit to the text of a row.
func (r *Row) withCallers(text string, room int) string {
	for _, caller := range r.Place.Callers {
		const arrow = " < "
		left := room - width(text) - len(arrow)
		if left < leastCaller {
			break
		}
		text += arrow + shorten(caller, left)
	}
	return text
}

// leastCaller is how many columns a caller needs to be worth showing.
const leastCaller = 12

// hides reports whether the filter leaves out a row.
func (m *Model) hides(text string, p *Place) bool {
	if m.filter == "" {
		return false
	}
	want := strings.ToLower(m.filter)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), want) }
	return text != naming && !has(text) && !has(p.File) && !has(p.Library) && !slices.ContainsFunc(p.Stack, has)
}

// sortRows returns rows by the chosen figure, the largest first.
func (m *Model) sortRows(rows []Row) []Row {
	of := func(r *Row) float64 {
		switch m.order {
		case OrderGrowth:
			return r.Growth
		case OrderRate:
			return r.Rate
		case OrderCount:
			if m.mark != nil {
				return float64(r.Since.Blocks)
			}
			return float64(r.Live.Blocks)
		}
		if m.mark != nil {
			return float64(r.Since.Bytes)
		}
		return float64(r.Live.Bytes)
	}
	// Rows are large: their places in the order are sorted, and each row is moved once.
	type rank struct {
		figure          float64
		live, allocated uint64
		n               int
	}
	ranks := make([]rank, len(rows))
	for i := range rows {
		r := &rows[i]
		ranks[i] = rank{of(r), r.Live.Bytes, r.Allocated.Bytes, i}
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(cmp.Compare(b.figure, a.figure), cmp.Compare(b.live, a.live), cmp.Compare(b.allocated, a.allocated), cmp.Compare(a.n, b.n))
	})
	sorted := make([]Row, len(rows))
	for i := range ranks {
		sorted[i] = rows[ranks[i].n]
	}
	return sorted
}
