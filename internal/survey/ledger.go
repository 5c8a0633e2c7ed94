package survey

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/explain"
)

// label is what the memory of a row is.
type label struct {
	kind explain.Kind
	what string
	unit string
	why  string // how it was recognised, if that may mislead
}

// amount is memory that is added to a row, in bytes.
type amount struct{ resident, shared, size, swap, huge, count uint64 }

// identifier is what distinguishes rows. Labels that differ only in their reasons are one row.
type identifier struct {
	kind explain.Kind
	what string
}

// ledger collects rows.
type ledger struct {
	rows  map[identifier]*explain.Row
	parts map[identifier]map[string]uint64
}

func newLedger() *ledger {
	return &ledger{rows: map[identifier]*explain.Row{}, parts: map[identifier]map[string]uint64{}}
}

// add adds memory to a row, and to the part of it with a name, if there is one.
func (l *ledger) add(to label, part string, a amount) {
	id := identifier{to.kind, to.what}
	r := l.rows[id]
	if r == nil {
		r = &explain.Row{Kind: to.kind, What: to.what, Unit: to.unit}
		l.rows[id] = r
		l.parts[id] = map[string]uint64{}
	}
	if to.why != "" && !strings.Contains(r.Why, to.why) {
		r.Likely = to.kind != explain.Unread && to.kind != explain.Other
		r.Why = strings.TrimPrefix(r.Why+"; "+to.why, "; ")
	}
	r.Resident += a.resident
	r.Shared += a.shared
	r.Size += a.size
	r.Swap += a.swap
	r.Huge += a.huge
	r.Count += a.count
	if part != "" {
		l.parts[id][part] += a.resident
	}
}

// listed is how many parts of a row are kept.
const listed = 8

// finish returns the rows with memory, the largest first.
func (l *ledger) finish() []explain.Row {
	rows := []explain.Row{}
	for key, r := range l.rows {
		if r.Resident+r.Swap+r.Size == 0 {
			continue
		}
		r.Parts = []explain.Part{}
		for name, n := range l.parts[key] {
			if n > 0 {
				r.Parts = append(r.Parts, explain.Part{Name: name, Resident: n})
			}
		}
		slices.SortFunc(r.Parts, func(a, b explain.Part) int {
			return cmp.Or(cmp.Compare(b.Resident, a.Resident), cmp.Compare(a.Name, b.Name))
		})
		if len(r.Parts) > listed {
			r.More = len(r.Parts) - listed
			r.Parts = slices.Clip(r.Parts[:listed])
		}
		rows = append(rows, *r)
	}
	slices.SortFunc(rows, func(a, b explain.Row) int {
		return cmp.Or(cmp.Compare(b.Resident, a.Resident), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.What, b.What))
	})
	return rows
}
