package topview

import (
	"slices"

	"rtrace-bpf/internal/live"
)

// Options select what a Model shows at first.
type Options struct {
	By     By
	Order  Order
	Filter string
	Plain  bool // sparklines of ASCII characters
}

// Model is what a view shows, and in which form. It takes snapshots and keys, and returns
// text. The zero Model is not valid: use New.
type Model struct {
	source  Source
	by      By
	order   Order
	filter  string
	plain   bool
	history history
	mark    *mark // nil for none
	now     *Snapshot
	labels  map[int]label // of call sites
	all     []Row
	screen  screen
}

// mark holds the figures of all items at a moment.
type mark struct {
	at *Snapshot
	of map[key]item
}

// New returns a Model without a snapshot.
func New(source Source, o Options) *Model {
	return &Model{source: source, by: o.By, order: o.Order, filter: o.Filter, plain: o.Plain}
}

// Update takes the next snapshot, unless the view is frozen. last marks the last one, which
// is shown in any case.
func (m *Model) Update(s *Snapshot, last bool) {
	if m.screen.frozen && !last {
		return
	}
	m.now = s
	m.history.begin(s.Elapsed)
	allocated := make(map[key]live.Amount)
	sites := items(s, BySite, m.source)
	for i := range sites {
		allocated[sites[i].key] = m.history.add(&sites[i])
	}
	if m.by == ByThread || m.by == BySize {
		others := items(s, m.by, m.source)
		for i := range others {
			allocated[others[i].key] = m.history.add(&others[i])
		}
	}
	m.history.allocated = allocated
	m.screen.last = last
	m.refresh()
}

// prepare begins the history of threads or sizes, if rows are made of these from now on. What
// they allocated before counts as of no refresh.
func (m *Model) prepare() {
	m.history.drop(ByThread, BySize)
	if m.by != ByThread && m.by != BySize {
		return
	}
	for _, x := range items(m.now, m.by, m.source) {
		m.history.add(&x)
		m.history.of[x.key].late = true
		m.history.allocated[x.key] = live.Amount{}
	}
}

// Refresh computes the rows again, because more names may be known. Figures do not change.
func (m *Model) Refresh() {
	if m.now != nil {
		m.refresh()
	}
}

// refresh computes the rows of the last snapshot.
func (m *Model) refresh() {
	m.all = m.sortRows(m.rowsOf(items(m.now, m.by, m.source), m.history.allocated))
	m.screen.clamp(len(m.all))
}

// Snapshot returns the last snapshot, which must not be changed; nil before the first one.
func (m *Model) Snapshot() *Snapshot { return m.now }

// Ended reports whether the last snapshot has been taken.
func (m *Model) Ended() bool { return m.screen.last }

// Rows returns the rows, the first one first. They are valid until the next change.
func (m *Model) Rows() []Row { return m.all }

// Missing returns the numbers of call sites that are not named yet and whose names the first
// rows need. If names decide which rows there are, these are all call sites.
func (m *Model) Missing(rows int) (sites []int) {
	if m.now == nil || m.by == ByThread || m.by == BySize {
		return nil
	}
	needed := m.all
	if m.by == BySite && m.filter == "" {
		from := min(m.screen.top, len(m.all))
		needed = m.all[from:min(from+rows, len(m.all))]
	}
	if s := &m.screen; s.opened && s.cursor < len(m.all) {
		needed = append(slices.Clip(m.all[s.cursor:s.cursor+1]), needed...)
	}
	leading := m.suspects()
	for _, x := range leading.all[:min(rows, len(leading.all))] {
		for _, r := range x.rows() {
			needed = append(slices.Clip(needed), *r)
		}
	}
	for i := range needed {
		for _, n := range needed[i].Sites {
			if _, ok := m.source.Place(n); !ok {
				sites = append(sites, n)
			}
		}
	}
	return sites
}

// suspects returns the suspects. A verdict is on a whole stack since the start of the recording, so
// rows of something else and changes since a mark have none.
func (m *Model) suspects() suspects {
	if m.by != BySite || m.mark != nil {
		return suspects{}
	}
	return suspectsOf(m.now, m.all)
}

// setMark sets the mark at the last snapshot.
func (m *Model) setMark() {
	k := &mark{at: m.now, of: make(map[key]item)}
	for _, by := range []By{BySite, ByThread, BySize} {
		for _, x := range items(m.now, by, m.source) {
			k.of[x.key] = x
		}
	}
	m.mark = k
}

// Totals is the sums of all rows.
type Totals struct {
	Live, Unknown, Allocated, Freed live.Amount
	Growth, Rate, Calls             float64
	Since                           Change
}

// total returns the sums of rows.
func total(rows []Row) Totals {
	var t Totals
	for i := range rows {
		r := &rows[i]
		t.Live.Add(r.Live)
		t.Unknown.Add(r.Unknown)
		t.Allocated.Add(r.Allocated)
		t.Freed.Add(r.Freed)
		t.Growth += r.Growth
		t.Rate += r.Rate
		t.Calls += r.Calls
		t.Since.Blocks += r.Since.Blocks
		t.Since.Bytes += r.Since.Bytes
	}
	return t
}
