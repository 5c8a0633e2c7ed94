package topview

import (
	"fmt"
	"time"

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

// judges reports whether the rows have verdicts: a verdict is on a whole stack since the start
// of the recording.
func (m *Model) judges() bool {
	return m.now.Judged && m.by == BySite && m.mark == nil
}

// suspects returns the rows whose blocks pile up, the first one first.
func (m *Model) suspects() (all []suspect) {
	if !m.judges() || len(m.now.Suspects) == 0 {
		return nil
	}
	rows := make(map[int]*Row, len(m.all))
	for i := range m.all {
		rows[m.all[i].Sites[0]] = &m.all[i]
	}
	for i := range m.now.Suspects {
		x := &m.now.Suspects[i]
		if r := rows[x.Site]; r != nil { // the filter leaves out rows
			all = append(all, suspect{r, &x.Trend})
		}
	}
	return all
}

// restful reports whether nothing grows, and enough was recorded to be sure.
func (m *Model) restful() bool {
	return m.judges() && len(m.now.Suspects) == 0 && time.Duration(m.now.Time) >= verdict.EnoughTime
}

// verdicts returns the lines about suspects, or the one that there are none, in lines of at
// most columns. It is empty without verdicts.
func (m *Model) verdicts(columns int) (lines []string) {
	if m.restful() {
		return []string{verdict.NothingGrows}
	}
	all := m.suspects()
	shown := all[:min(len(all), suspectLines)]
	for i := range shown {
		title := "suspect: "
		if len(all) > 1 {
			title = fmt.Sprintf("suspect %d of %d: ", i+1, len(all))
		}
		text := verdict.Text(shown[i].trend)
		room := columns - width(title) - len(": ") - width(text)
		switch {
		case room >= leastText:
			lines = append(lines, title+shown[i].fit(room)+": "+text)
		case len(all) == 1:
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

// verdict returns the verdict on a row in words, or an empty string if it is no suspect.
func (m *Model) verdict(r *Row) string {
	if !m.judges() || len(r.Sites) == 0 {
		return ""
	}
	for i := range m.now.Suspects {
		if x := &m.now.Suspects[i]; x.Site == r.Sites[0] {
			return verdict.Text(&x.Trend)
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

// suspectObjects returns the first suspects for JSON. The result is nil without verdicts, and
// empty if nothing grows.
func (m *Model) suspectObjects(most int) (objects []suspectObject, others int) {
	all := m.suspects()
	if len(all) == 0 && !m.restful() {
		return nil, 0
	}
	shown := all[:min(len(all), most)]
	objects = []suspectObject{}
	for i := range shown {
		objects = append(objects, suspectObject{shown[i].Text, verdict.ObjectOf(shown[i].trend), placed(&shown[i].Place)})
	}
	return objects, len(all) - len(shown)
}
