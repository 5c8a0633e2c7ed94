package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"rtrace-bpf/internal/analysis/leak"
	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/table"
	"rtrace-bpf/internal/report/verdict"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// leakReport is the output of 'rtrace leaks'.
type leakReport struct {
	groupTexts
	options   *leaksOptions
	groups    *sites.Grouper
	all       amount // including blocks that are too small, too young or outside the window
	unknown   amount // unknown blocks, likewise
	replaced  amount // live blocks that ended because another one began at their address
	unmatched uint64
	young     live.Young
	doubtful  bool        // frees are not known
	rss       *rss.Growth // nil if it is not known
	trends    *trends     // nil if they are not known
	resolver  *resolve.Resolver
}

// add adds a call whose block has no free in the trace, whether it is in the window, and
// whether the block is unknown.
func (r *leakReport) add(rec *trace.Record, inside, unknown bool) {
	all := &r.all
	if unknown {
		all = &r.unknown
	}
	all.add(amount{1, rec.Call.Size})
	if !unknown && r.stats.last-rec.Time < int64(r.young.Usual) {
		r.young.Young++
	}
	o := r.options
	switch {
	case !inside, unknown != o.unknown,
		rec.Call.Size < uint64(o.minSize),
		o.events > 0 && r.stats.age(rec) < o.events,
		o.age > 0 && r.stats.last-rec.Time < int64(o.age):
		return
	}
	if o.suppressions.leaveOut(rec) {
		return
	}
	n := r.groups.Add(rec)
	if r.trends != nil {
		r.trends.add(n, r.groups.At(n), rec)
	}
}

// finish completes the figures.
func (r *leakReport) finish(f *leak.Finder) {
	r.unmatched = f.Unmatched()
	r.replaced.Blocks, r.replaced.Bytes = f.Replaced()
	r.young.Recorded, r.young.Live = time.Duration(r.stats.last-r.stats.first), r.all.Blocks
	if r.stats.gaps+r.stats.lost == 0 {
		r.young.Before = r.unmatched
	}
	if r.doubtful || r.options.unknown || r.options.minAge != "" {
		r.young = live.Young{}
	}
}

// defaultGroups is how many groups are printed without --top.
const defaultGroups = 10

// shown returns the groups to print, and the sums of the others.
func (r *leakReport) shown() (groups []*sites.Group, more int, rest amount) {
	groups = r.groups.Groups()
	top := r.options.top
	if r.trends != nil {
		r.trends.sort(groups)
	}
	if r.folds() {
		if top = defaultGroups; r.trends.grows() {
			top = min(top, r.trends.suspects)
		}
	}
	if top > 0 && top < len(groups) {
		for _, g := range groups[top:] {
			rest.add(amount{g.Blocks, g.Bytes})
		}
		return groups[:top], len(groups) - top, rest
	}
	return groups, 0, rest
}

// folds reports whether only some groups are printed, although --top does not request that.
func (r *leakReport) folds() bool {
	o := r.options
	return !o.flags.Changed("top") && !o.all && !o.json && !o.blocks
}

// print writes the report as text.
func (r *leakReport) print(w io.Writer) error {
	if r.rss != nil && r.rss.Elsewhere {
		if _, err := fmt.Fprintln(w, r.rss.Verdict); err != nil {
			return err
		}
	}
	groups, more, rest := r.shown()
	blocks, bytes := r.groups.Total()
	title, all := r.options.title(), r.all
	if r.options.unknown {
		all = r.unknown
	}
	lines := fmt.Sprintf("%s: %s (%s)", title, plural(blocks, "block"), plural(bytes, "byte"))
	if all.Blocks != blocks {
		lines += fmt.Sprintf(", of %d (%s)", all.Blocks, plural(all.Bytes, "byte"))
	}
	if r.unknown.Blocks > 0 && !r.options.unknown {
		lines += "\n" + unknownText(r.unknown) + "; --unknown prints them"
	}
	if text := r.options.suppressions.text(); text != "" {
		lines += "\n" + text
	}
	if text := youngText(&r.young); text != "" {
		lines += "\n" + text
	}
	lines = strings.Join(append([]string{lines}, r.trends.texts()...), "\n")
	if _, err := fmt.Fprintln(w, lines); err != nil || blocks == 0 {
		return err
	}
	t := table.New(table.Column{Title: "bytes"}, table.Column{Title: "%"}, table.Column{Title: "blocks"}, table.Column{Title: r.options.key.String(), Left: true})
	spaced := r.options.blocks || r.severalLines(groups) || r.trends.grows()
	for n, g := range groups {
		if spaced && n > 0 {
			t.Blank()
		}
		if l := r.trends.leadOf(g); l != nil {
			r.leadRows(t, l, bytes)
			t.Blank()
		}
		amountRows(t, amount{g.Blocks, g.Bytes}, bytes, r.judgedTexts(g))
		for i := range g.List {
			t.Row("", "", "", "  "+r.block(&g.List[i]))
		}
	}
	if spaced && more > 0 {
		t.Blank()
	}
	if more > 0 {
		t.Row(number(rest.Bytes), percent(rest.Bytes, bytes), number(rest.Blocks), "in "+plural(uint64(more), "other group")+r.folded())
	}
	_, err := fmt.Fprintln(w)
	if err == nil {
		_, err = t.WriteTo(w)
	}
	return err
}

// title returns what the listed blocks are.
func (o *leaksOptions) title() string {
	switch {
	case o.unknown:
		return "unknown"
	case o.window.to != "":
		return "live at --to"
	case o.resource == residentType:
		return "still resident at the end"
	}
	return "still live at the end"
}

// leadRows adds the rows about groups that leak together. Their own rows follow.
func (r *leakReport) leadRows(t *table.Table, l *lead, all uint64) {
	var sum amount
	for _, g := range l.groups {
		sum.add(amount{g.Blocks, g.Bytes})
	}
	amountRows(t, sum, all, []string{verdict.Text(l.trend), l.title() + ":"})
}

// amountRows adds rows with an amount in the first one, and a text in each.
func amountRows(t *table.Table, a amount, all uint64, texts []string) {
	row := []string{number(a.Bytes), percent(a.Bytes, all), number(a.Blocks), ""}
	for _, text := range texts {
		row[3] = text
		t.Row(row...)
		row = make([]string, 4)
	}
}

// judgedTexts returns the lines of a group, preceded by its verdict if call sites
// that grow are set apart. The verdict on groups that leak together is before them.
func (r *leakReport) judgedTexts(g *sites.Group) []string {
	texts := r.texts(g)
	if r.trends.part(g) {
		for i := range texts {
			texts[i] = "  " + texts[i]
		}
		return texts
	}
	if !r.trends.grows() && !r.options.all {
		return texts
	}
	if text := r.trends.verdict(g); text != "" {
		return append([]string{text}, texts...)
	}
	return texts
}

// folded returns how to print the groups that are left out because they do not
// grow.
func (r *leakReport) folded() string {
	switch {
	case !r.folds():
		return ""
	case r.trends.grows() && r.trends.suspects <= defaultGroups:
		return ", none of which grows steadily; --all prints them"
	}
	return "; --all prints them"
}

// block prints a block as a line.
func (r *leakReport) block(b *sites.Block) string {
	line := fmt.Sprintf("block 0x%016x: %s", b.Addr, plural(b.Size, "byte"))
	if b.Function != "" {
		line += " by " + sites.Printable(b.Function)
	}
	line += fmt.Sprintf(", call %d", b.Seq)
	if b.Index != 0 {
		line += fmt.Sprintf(", index %d", b.Index)
	}
	if b.Time != 0 {
		line += ", at " + seconds(b.Time-r.stats.first) + " s"
	}
	if b.TID != 0 || b.Thread != 0 {
		line += ", thread " + r.thread(b.PID, b.TID, b.Thread)
	}
	return line
}
