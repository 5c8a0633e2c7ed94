package topview

import (
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/aggregate"
)

// difference is what distinguishes a row from others with the same text.
type difference struct {
	text    string // follows the text of the row; empty for nothing
	outside int    // distance of its outermost frame from the one of the row's text
}

// distinguish adds to rows with the same text what distinguishes them: the first frame that
// differs. Each row is one of the call sites. It begins with the frame of the text, and goes on
// with its callers and then with the functions that it called.
func distinguish(rows []Row, sites []aggregate.Site) {
	same := make(map[string][]*Row)
	for i := range rows {
		if r := &rows[i]; r.Text != naming {
			same[r.Text] = append(same[r.Text], r)
		}
	}
	for _, group := range same {
		if len(group) > 1 {
			split(group, distances(group), sites)
		}
	}
}

// distances returns the distances of all frames of rows from the frame of the text, in the
// order in which they are compared. Callers have positive ones.
func distances(group []*Row) (all []int) {
	outside, inside := 0, 0
	for _, r := range group {
		outside = max(outside, len(r.Place.Frames)-r.Place.At)
		inside = max(inside, r.Place.At)
	}
	for d := range outside {
		all = append(all, d)
	}
	for d := range inside {
		all = append(all, -d-1)
	}
	return all
}

// split adds the first difference to the rows of a group, and then to those that are still the
// same.
func split(group []*Row, distances []int, sites []aggregate.Site) {
	for i, d := range distances {
		parts := make(map[string][]*Row)
		names, lines := make(map[string]map[string]bool), make(map[string]map[string]bool)
		for _, r := range group {
			f := r.frame(d)
			parts[f.Offset] = append(parts[f.Offset], r)
			note(names, f.Function, f.Offset)
			note(lines, f.Function+" "+f.Line, f.Offset)
		}
		if len(parts) == 1 {
			continue
		}
		for _, r := range group {
			f := r.frame(d)
			text := f.Offset
			switch {
			case d == 0:
			case len(names[f.Function]) == 1:
				text = f.Function
			case f.Line != "" && len(lines[f.Function+" "+f.Line]) == 1:
				text = f.Function + " (" + f.Line + ")"
			}
			r.differ(d, text)
		}
		for _, part := range parts {
			if len(part) > 1 {
				split(part, distances[i+1:], sites)
			}
		}
		return
	}
	splitProcesses(group, sites)
}

// note adds a value to the set of a key.
func note(sets map[string]map[string]bool, key, value string) {
	if sets[key] == nil {
		sets[key] = make(map[string]bool)
	}
	sets[key][value] = true
}

// splitProcesses adds the process to rows with the same stack, if there are several.
func splitProcesses(group []*Row, sites []aggregate.Site) {
	pid := func(r *Row) int32 { return sites[r.Sites[0]].PID }
	if slices.ContainsFunc(group, func(r *Row) bool { return pid(r) != pid(group[0]) }) {
		for _, r := range group {
			r.difference.text += fmt.Sprintf(" in process %d", pid(r))
		}
	}
}

// frame returns the frame at a distance from the one of the text; an empty one if there is none.
func (r *Row) frame(distance int) Frame {
	if n := r.Place.At + distance; n >= 0 && n < len(r.Place.Frames) {
		return r.Place.Frames[n]
	}
	return Frame{}
}

// differ adds the text of a frame at a distance to what distinguishes the row.
func (r *Row) differ(distance int, text string) {
	switch {
	case text == "":
		return // the stack ends before
	case distance == 0:
		plus, ok := strings.CutPrefix(text, r.Place.Function)
		switch {
		case !ok:
			text = " at " + text // the function is inlined into another one
		case r.Place.File != "":
			text = " " + plus
		default:
			text = plus
		}
	case distance < 0:
		text = " through " + text
	case distance > r.difference.outside+1:
		text = " < " + gap + " < " + text
	default:
		text = " < " + text
	}
	r.difference.text += text
	r.difference.outside = max(r.difference.outside, distance)
}
