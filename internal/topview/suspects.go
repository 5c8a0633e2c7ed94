package topview

import (
	"fmt"
	"strings"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/report/verdict"
)

// suspect is a row whose blocks pile up, or several that leak together.
type suspect struct {
	*Row  // of several the first
	of    *aggregate.Suspect
	parts []suspect // of several
}

// fit returns the text of a suspect in a number of columns.
func (x *suspect) fit(room int) string {
	if len(x.of.Parts) == 0 {
		return x.Row.fit(room)
	}
	text := x.together()
	if full := text + ", " + verdict.Each(len(x.of.Parts), &x.of.Trend); width(full) <= room {
		return full
	}
	return shorten(text, room)
}

// together returns what call sites that leak together have in common.
func (x *suspect) together() string {
	var stacks [][]string
	for _, r := range x.rows() {
		var names []string
		for i := range r.Place.Frames {
			names = append(names, r.Place.Frames[i].whole())
		}
		stacks = append(stacks, names)
	}
	return verdict.Together(len(x.of.Parts), verdict.Below(stacks, x.of.Common))
}

// whole returns the function at a frame, into which Function may be inlined.
func (f *Frame) whole() string {
	if n := strings.LastIndex(f.Offset, "+0x"); n > 0 && f.Function != f.Offset {
		return f.Offset[:n]
	}
	return f.Function
}

// rows returns the rows of a suspect.
func (x *suspect) rows() []*Row {
	if len(x.parts) == 0 {
		return []*Row{x.Row}
	}
	var all []*Row
	for i := range x.parts {
		all = append(all, x.parts[i].Row)
	}
	return all
}

// suspectLines is how many lines the suspects take at most.
const suspectLines = 3

// suspects is what is known of the growth of rows.
type suspects struct {
	all  []suspect // the first one first
	none string    // the verdict that no call site grows; empty if some do, or too little was recorded to be sure
}

// suspectsOf returns the suspects among rows, each of which is a call site.
func suspectsOf(s *Snapshot, rows []Row) suspects {
	if !s.Judged {
		return suspects{}
	}
	if len(s.Suspects) == 0 {
		observed := verdict.ObservationOf(s.State, "")
		if !observed.Enough() {
			return suspects{}
		}
		return suspects{none: observed.None()}
	}
	bySite := make([]*Row, len(s.Sites))
	for i := range rows {
		bySite[rows[i].Sites[0]] = &rows[i]
	}
	var out suspects
	for i := range s.Suspects {
		x := &s.Suspects[i]
		var parts []suspect
		for k := range x.Parts {
			if r := bySite[x.Parts[k].Site]; r != nil { // the filter leaves out rows
				parts = append(parts, suspect{Row: r, of: &x.Parts[k]})
			}
		}
		switch r := bySite[x.Site]; {
		case len(parts) > 0:
			out.all = append(out.all, suspect{parts[0].Row, x, parts})
		case r != nil:
			out.all = append(out.all, suspect{Row: r, of: x})
		}
	}
	return out
}

// lines returns the lines about suspects, or the one that there are none, in lines of at most
// columns. It is empty without verdicts.
func (s *suspects) lines(columns int) (lines []string) {
	if s.none != "" {
		return []string{s.none}
	}
	shown := s.all[:min(len(s.all), suspectLines)]
	for i := range shown {
		title := "suspect: "
		if len(s.all) > 1 {
			title = fmt.Sprintf("suspect %d of %d: ", i+1, len(s.all))
		}
		text := verdict.Text(&shown[i].of.Trend)
		room := columns - width(title) - len(": ") - width(text)
		switch {
		case room >= leastText:
			lines = append(lines, title+shown[i].fit(room)+": "+text)
		case len(s.all) == 1:
			lines = append(lines, title+shown[i].fit(max(leastText, columns-width(title))), "  "+text)
		default:
			lines = append(lines, cut(title+shown[i].fit(leastText)+": "+text, columns)) // the figures at the end matter least
		}
	}
	return lines
}

// Verdicts returns the lines about the suspects of the last snapshot, or the one that there are
// none, followed by what makes the verdicts uncertain. Lines about suspects have at most columns.
func (m *Model) Verdicts(columns int) []string {
	observed := verdict.ObservationOf(m.now.State, "")
	leading := m.list.suspects
	lines := leading.lines(columns)
	if len(lines) == 0 {
		lines = []string{observed.None()}
	}
	return append(lines, observed.Doubts()...)
}

// verdict returns the verdict on a row in words, or an empty string if it is no suspect.
func (s *suspects) verdict(r *Row) string {
	for i := range s.all {
		x := &s.all[i]
		for _, part := range x.rows() {
			if part != r {
				continue
			}
			text := verdict.Text(&x.of.Trend)
			if len(x.of.Parts) > 0 {
				text = x.together() + ", " + verdict.Each(len(x.of.Parts), &x.of.Trend) + ": " + text
			}
			return text
		}
	}
	return ""
}

// suspectObject is a suspect in JSON.
type suspectObject struct {
	Text string `json:"text"`
	*verdict.Object
	placeObject
	// Parts are the call sites that leak together, the one of placeObject first; none for a
	// single one.
	Parts []suspectObject `json:"parts,omitempty"`
}

// object returns a suspect for JSON.
func (x *suspect) object() suspectObject {
	out := suspectObject{x.label(), verdict.ObjectOf(&x.of.Trend), placed(x.Place), nil}
	if len(x.of.Parts) == 0 {
		return out
	}
	out.Text = x.together() + ", " + verdict.Each(len(x.of.Parts), &x.of.Trend)
	for i := range x.parts {
		out.Parts = append(out.Parts, x.parts[i].object())
	}
	return out
}

// objects returns the first suspects for JSON. The result is nil without verdicts, and empty if
// nothing grows.
func (s *suspects) objects(most int) (objects []suspectObject, others int) {
	if len(s.all) == 0 && s.none == "" {
		return nil, 0
	}
	shown := s.all[:min(len(s.all), most)]
	objects = []suspectObject{}
	for i := range shown {
		objects = append(objects, shown[i].object())
	}
	return objects, len(s.all) - len(shown)
}
