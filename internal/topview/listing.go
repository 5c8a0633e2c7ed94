package topview

import (
	"cmp"
	"fmt"
	"slices"

	"rtrace-bpf/internal/analysis/aggregate"
)

// listing is the rows of a snapshot that a query selects, and what leads them: everything that a
// table, a line of JSON or a screen shows.
type listing struct {
	query    *query
	snapshot *Snapshot
	last     bool // no snapshot follows
	history  *history
	source   Source
	rows     []Row // the first one first
	suspects suspects

	room room
}

// room is memory that the next listing uses again.
type room struct {
	rows  []Row // in the order in which they occur
	ranks []rank
	sites []int // 0, 1, 2 and so on
}

// site returns the list of one call site.
func (r *room) site(n int) []int {
	for len(r.sites) <= n {
		r.sites = append(r.sites, len(r.sites))
	}
	return r.sites[n : n+1 : n+1]
}

// fill makes the listing of the last snapshot of a model.
func (l *listing) fill(m *Model) {
	l.query, l.snapshot, l.last, l.history, l.source = &m.query, m.now, m.last, &m.history, m.source
	l.room.rows = l.gathered(&m.names, l.room.rows[:0])
	l.sort()
	l.suspects = suspects{}
	if l.query.judges() {
		l.suspects = suspectsOf(l.snapshot, l.rows)
	}
}

// gathered appends the rows in the order in which they occur, without those that never had a
// block in them.
func (l *listing) gathered(n *names, rows []Row) []Row {
	q, seconds := l.query, l.history.interval().Seconds()
	index := make(map[string]int)
	for x := range items(l.snapshot, q.by, l.source) {
		name := n.of(x, l.snapshot)
		if q.hides(name.text, name.place) {
			continue
		}
		at, known := len(rows), false
		if q.by != BySite { // two stacks may have the same text
			at, known = index[name.text]
		}
		if !known {
			at = len(rows)
			rows = append(rows, Row{Text: name.text, Place: name.place, Oldest: -1, key: x.key})
			if q.by != BySite {
				index[name.text] = at
			}
		}
		r := &rows[at]
		switch {
		case x.kind != BySite:
		case known:
			r.Sites = append(r.Sites, int(x.n))
		default:
			r.Sites = l.room.site(int(x.n))
		}
		r.add(x, l.history.allocated(x.key), seconds)
		r.Growth += l.history.growth(x.key)
		if q.mark != nil {
			c := q.mark.change(x)
			r.Since.Blocks += c.Blocks
			r.Since.Bytes += c.Bytes
		}
	}
	rows = slices.DeleteFunc(rows, func(r Row) bool { return q.unchanged(&r) })
	if q.by == BySite {
		distinguish(rows, l.snapshot.Sites)
	}
	return rows
}

// rank is the place of a row in the order.
type rank struct {
	figure          float64
	live, allocated uint64
	n               int
}

// sort sorts the rows by the chosen figure, the largest first. Rows are large: their ranks are
// sorted, and each row is moved once.
func (l *listing) sort() {
	rows, ranks := l.room.rows, l.room.ranks[:0]
	for i := range rows {
		r := &rows[i]
		ranks = append(ranks, rank{l.query.figure(r), r.Live.Bytes, r.Allocated.Bytes, i})
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		return cmp.Or(cmp.Compare(b.figure, a.figure), cmp.Compare(b.live, a.live), cmp.Compare(b.allocated, a.allocated), cmp.Compare(a.n, b.n))
	})
	l.rows = l.rows[:0]
	for i := range ranks {
		l.rows = append(l.rows, rows[ranks[i].n])
	}
	l.room.ranks = ranks
}

// header returns the lines about the processes: what they are, their memory, and what
// touches the figures.
func (l *listing) header() []string {
	s := l.snapshot
	return append([]string{s.title(), l.memory(), s.tracing()}, s.Notes()...)
}

// memory returns the line about memory and calls.
func (l *listing) memory() string {
	var rss uint64
	for i := range l.snapshot.Processes {
		rss += l.snapshot.Processes[i].RSS
	}
	text := ""
	if rss > 0 {
		text = "RSS " + Bytes(rss) + "  "
	}
	var all Totals
	resident := false
	for i := range l.snapshot.Resources {
		if r := &l.snapshot.Resources[i]; r.InMemory() {
			all.Live, all.Unknown = r.Total.Live, r.Total.Unknown
			resident = r.Type == aggregate.Resident
		}
	}
	all.Rate, all.Calls = l.history.rates()
	if resident {
		return text + fmt.Sprintf("%s touched since the start and still resident  new %s/s", Bytes(all.Live.Bytes), bytesOf(all.Rate))
	}
	return text + fmt.Sprintf("live %s in %s blocks  allocates %s/s in %s calls/s", Bytes(all.Live.Bytes), Count(float64(all.Live.Blocks)), bytesOf(all.Rate), Count(all.Calls))
}

// state returns the line about how the rows are made.
func (l *listing) state(frozen bool) string {
	q := l.query
	text := fmt.Sprintf("by %s, sorted by %s", q.by, q.order)
	if q.filter != "" {
		text += fmt.Sprintf(", with %q", q.filter)
	}
	if q.mark != nil {
		text += ", changes since the mark at " + clock(q.mark.at.Elapsed)
	}
	if l.last {
		text += ", ENDED: these are the last figures"
	} else if frozen {
		text += ", FROZEN at " + clock(l.snapshot.Elapsed)
	}
	return text
}
