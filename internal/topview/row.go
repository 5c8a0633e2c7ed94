package topview

import (
	"iter"
	"strings"

	"rtrace-bpf/internal/live"
)

// Row is the figures of calls that have something in common.
type Row struct {
	Text      string // what they have in common, safe for a terminal
	Place     *Place // of a site, or of its function, file or library; empty for others
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

	key        key // of the first item
	difference difference
}

// Change is a change of blocks and bytes.
type Change struct{ Blocks, Bytes int64 }

// keys returns the keys of the items of a row.
func (r *Row) keys() iter.Seq[key] {
	return func(yield func(key) bool) {
		if len(r.Sites) == 0 {
			yield(r.key)
			return
		}
		for _, n := range r.Sites {
			if !yield(keyOf(n)) {
				return
			}
		}
	}
}

// add adds the figures of an item, and what it has allocated in an interval of some seconds.
func (r *Row) add(x *item, allocated live.Amount, seconds float64) {
	r.Live.Add(x.live)
	r.Unknown.Add(x.unknown)
	r.Allocated.Add(x.allocated)
	r.Freed.Add(x.freed)
	if x.oldest >= 0 && (r.Oldest < 0 || x.oldest < r.Oldest) {
		r.Oldest = x.oldest
	}
	if seconds > 0 {
		r.Rate += float64(allocated.Bytes) / seconds
		r.Calls += float64(allocated.Blocks) / seconds
	}
}

// label returns the text of a row with what distinguishes it from others.
func (r *Row) label() string { return r.Text + r.difference.text }

// fit returns the text of a row in a number of columns, with as many callers as fit.
func (r *Row) fit(room int) string {
	if d := &r.difference; d.text != "" {
		if left := room - width(d.text); left >= leastCaller || width(r.Text) <= left {
			text := shorten(r.Text, left) + d.text
			if d.outside > 0 {
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

// Totals is the sums of rows.
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

// row returns the sums as a row.
func (t *Totals) row() *Row {
	return &Row{Live: t.Live, Growth: t.Growth, Rate: t.Rate, Calls: t.Calls, Since: t.Since}
}
