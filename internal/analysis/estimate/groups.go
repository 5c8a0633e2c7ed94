package estimate

import (
	"math"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// Groups estimates the allocations of groups, such as call sites. The zero value is ready to
// use.
type Groups struct {
	Windows
	all   allocations
	group []allocations
	rates rates
}

type allocations struct{ blocks, bytes Sum }

func (a *allocations) add(w *Windows, size uint64) {
	a.blocks.Add(w, 1)
	a.bytes.Add(w, float64(size))
}

// Allocated is what is known of the allocations of a group.
type Allocated struct {
	Blocks Estimate `json:"blocks"`
	Bytes  Estimate `json:"bytes"`
}

// Amount returns the values without their errors, rounded.
func (a *Allocated) Amount() live.Amount {
	return live.Amount{Blocks: uint64(math.Round(a.Blocks.Value)), Bytes: uint64(math.Round(a.Bytes.Value))}
}

func (a *allocations) estimate(w *Windows) Allocated {
	return Allocated{Blocks: a.blocks.Estimate(w), Bytes: a.bytes.Estimate(w)}
}

// Record processes a record that is no call.
func (g *Groups) Record(r *trace.Record) {
	if r.Kind != trace.KindCall {
		g.Observe(r)
	}
}

// Add adds an allocation of a group, which is numbered from 0, after the records that were
// observed.
func (g *Groups) Add(group int, size uint64) { g.AddToAll([]int{group}, size) }

// AddToAll adds an allocation that belongs to several groups, such as a function and its callers.
func (g *Groups) AddToAll(groups []int, size uint64) {
	g.all.add(&g.Windows, size)
	g.rates.add(&g.Windows, size)
	for _, n := range groups {
		for n >= len(g.group) {
			g.group = append(g.group, allocations{})
		}
		g.group[n].add(&g.Windows, size)
	}
}

// Len returns the number of groups, including those below the highest one that have nothing.
func (g *Groups) Len() int { return len(g.group) }

// Of returns the allocations of a group.
func (g *Groups) Of(group int) Allocated { return g.group[group].estimate(&g.Windows) }

// All returns the allocations of all groups together.
func (g *Groups) All() Allocated { return g.all.estimate(&g.Windows) }

// Rates returns what each window estimates for the stretch that it stands for.
func (g *Groups) Rates() []Rate { return g.rates.of(&g.Windows) }

// Text returns one line about the windows that all figures of a view come from.
func (w *Windows) Text() string {
	s := w.Summary()
	text := "estimated from "
	if s.Windows == 1 {
		text += "one window"
	} else {
		text += grouped(float64(s.Windows)) + " windows"
	}
	text += " of " + rounded(s.Open) + " in all (--budget)"
	if whole := w.last - w.begun; whole > 0 {
		text += "; they stand for " + rounded(min(s.Covered, whole)) + " of " + rounded(whole)
	}
	return text
}

// Lifeless is the line about what windows do not show.
const Lifeless = "live, peak and temporary blocks are not known, since windows miss frees: rtrace-bpf -e growth records what grows"
