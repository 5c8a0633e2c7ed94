// Package loss sums up what is missing from a trace, by reason.
package loss

import (
	"strings"

	"rtrace-bpf/trace"
)

// Loss is the events that are missing for one reason.
type Loss struct {
	Count      uint64
	Gap        bool  // nothing was recorded for a while, Count times
	Missing    int64 // total length of the gaps in nanoseconds
	HidesFrees bool  // the missing events may include frees
}

// Table holds the losses by reason. A nil Table is empty.
type Table map[string]*Loss

// maxReasons bounds the number of reasons. Losses for others are counted
// together.
const maxReasons = 1 << 8

// other is the reason of losses beyond maxReasons.
const other = "(other)"

// Add counts the loss of a record, which is one of kind [trace.KindLost].
func (t *Table) Add(r *trace.Record) {
	if *t == nil {
		*t = make(Table)
	}
	reason := r.Lost.Reason
	l := (*t)[reason]
	if l == nil && len(*t) >= maxReasons {
		reason = other
		l = (*t)[reason]
	}
	if l == nil {
		l = &Loss{Gap: r.Lost.Gap(), HidesFrees: r.Lost.HidesFrees()}
		(*t)[strings.Clone(reason)] = l
	}
	l.Count += r.Lost.Count
	if l.Gap && r.Lost.Since != 0 {
		l.Missing += max(0, r.Time-r.Lost.Since)
	}
}

// HiddenFrees returns an upper bound for the number of missing frees, without
// those in gaps.
func (t Table) HiddenFrees() (n uint64) {
	for _, l := range t {
		if l.HidesFrees && !l.Gap {
			n += l.Count
		}
	}
	return n
}

// Gaps returns the number of gaps in the recording.
func (t Table) Gaps() (n uint64) {
	for _, l := range t {
		if l.Gap {
			n += l.Count
		}
	}
	return n
}
