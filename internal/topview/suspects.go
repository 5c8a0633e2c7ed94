package topview

import (
	"fmt"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/report/verdict"
)

// suspect is a row whose blocks pile up.
type suspect struct {
	*Row
	trend *trend.Trend
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
		if r := bySite[x.Site]; r != nil { // the filter leaves out rows
			out.all = append(out.all, suspect{r, &x.Trend})
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
		text := verdict.Text(shown[i].trend)
		room := columns - width(title) - len(": ") - width(text)
		switch {
		case room >= leastText:
			lines = append(lines, title+shown[i].fit(room)+": "+text)
		case len(s.all) == 1:
			lines = append(lines, title+shown[i].fit(max(leastText, columns-width(title))), "  "+text)
		default:
			line := title + shown[i].fit(leastText) + ": " + text
			if width(line) > columns {
				line = head(line, columns-1) + gap // the figures at the end matter least
			}
			lines = append(lines, line)
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
		if s.all[i].Row == r {
			return verdict.Text(s.all[i].trend)
		}
	}
	return ""
}

// suspectObject is a suspect in JSON.
type suspectObject struct {
	Text string `json:"text"`
	*verdict.Object
	placeObject
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
		objects = append(objects, suspectObject{shown[i].label(), verdict.ObjectOf(shown[i].trend), placed(shown[i].Place)})
	}
	return objects, len(s.all) - len(shown)
}
