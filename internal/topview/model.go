package topview

import (
	"io"
	"slices"

	"rtrace-bpf/internal/printable"
)

// Options select what a Model shows at first.
type Options struct {
	By     By
	Order  Order
	Filter string
	Plain  bool // screens have sparklines and gaps of ASCII characters
}

// Model is what a view shows, and in which form. It takes snapshots and keys, and returns
// text. The zero Model is not valid: use New.
type Model struct {
	source  Source
	query   query
	names   names
	history history
	now     *Snapshot // nil before the first one
	last    bool      // now is the last one
	list    listing   // of now
	screen  screen
}

// New returns a Model without a snapshot.
func New(source Source, o Options) *Model {
	return &Model{
		source: source, names: names{source: source, by: o.By}, screen: screen{plain: o.Plain},
		query: query{by: o.By, order: o.Order, filter: o.Filter},
	}
}

// Update takes the next snapshot, unless the view is frozen. last marks the last one, which
// is shown in any case.
func (m *Model) Update(s *Snapshot, last bool) {
	if m.screen.frozen && !last {
		return
	}
	m.now, m.last = s, last
	m.history.begin(s.Elapsed)
	for x := range items(s, BySite, m.source) {
		m.history.add(x)
	}
	if m.query.by.fromDetails() {
		for x := range items(s, m.query.by, m.source) {
			m.history.add(x)
		}
	}
	m.Refresh()
}

// Refresh computes the rows again, because more names may be known. Figures do not change.
func (m *Model) Refresh() {
	if m.now != nil {
		m.list.fill(m)
		m.screen.clamp(len(m.list.rows))
	}
}

// group makes rows of something else from now on. What threads or sizes allocated before is not
// known, and counts as of no refresh.
func (m *Model) group(by By) {
	m.query.by = by
	m.names.group(by)
	m.history.drop(ByThread, BySize)
	if by.fromDetails() {
		for x := range items(m.now, by, m.source) {
			m.history.addLate(x)
		}
	}
}

// Snapshot returns the last snapshot, which must not be changed; nil before the first one.
func (m *Model) Snapshot() *Snapshot { return m.now }

// Ended reports whether the last snapshot has been taken.
func (m *Model) Ended() bool { return m.last }

// Rows returns the rows, the first one first. They are valid until the next change.
func (m *Model) Rows() []Row { return m.list.rows }

// Missing returns the numbers of call sites that are not named yet and whose names the first
// rows need. If names decide which rows there are, these are all call sites.
func (m *Model) Missing(rows int) (sites []int) {
	if m.now == nil || m.query.by.fromDetails() {
		return nil
	}
	all := m.list.rows
	needed := all
	if m.query.by == BySite && m.query.filter == "" {
		from := min(m.screen.top, len(all))
		needed = all[from:min(from+rows, len(all))]
	}
	if s := &m.screen; s.opened && s.cursor < len(all) {
		needed = append(slices.Clip(all[s.cursor:s.cursor+1]), needed...)
	}
	leading := m.list.suspects.all
	for i := range leading[:min(rows, len(leading))] {
		for _, r := range leading[i].rows() {
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

// View returns the screen: height lines of at most width columns.
func (m *Model) View(width, height int) []Line {
	if m.now == nil {
		return m.screen.waiting(width, height)
	}
	return m.screen.draw(&m.list, width, height)
}

// WriteTable writes the lines about the processes and the first rows as text, in lines of at
// most width columns, unless the figures take more.
func (m *Model) WriteTable(w io.Writer, rows, width int) error {
	return m.list.writeTable(w, rows, width)
}

// WriteJSON writes the last snapshot with the first rows as one line of JSON.
func (m *Model) WriteJSON(w io.Writer, rows int) error { return m.list.writeJSON(w, rows) }

// Tell shows a message until the next key.
func (m *Model) Tell(text string) { m.screen.message = printable.Name(text) }
