package profile

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
)

// Row is the sum of the allocations with the same frames.
type Row struct {
	Frames []sites.Frame // the innermost first; not empty
	Usage
}

// View selects what rows and graphs distinguish and how they are sorted.
type View struct {
	Addresses bool // distinguish the places within a function
	ByCount   bool // sort by blocks instead of bytes
}

// Direct returns the allocations of each function itself, the largest first.
func (p *Profile) Direct(v View) []*Row { return p.rows(1, v) }

// Leaks returns the unfreed blocks by stacks of at most depth functions, the
// largest first. All frames count if depth is 0.
func (p *Profile) Leaks(depth int, v View) []*Row {
	rows := slices.DeleteFunc(p.rows(depth, v), func(r *Row) bool {
		n, _ := r.Unfreed.Total()
		return n == 0
	})
	slices.SortStableFunc(rows, func(a, b *Row) int { return v.compare(&a.Unfreed, &b.Unfreed) })
	return rows
}

// compare orders sums, the largest first.
func (v View) compare(a, b *Sums) int {
	n, x := a.Total()
	m, y := b.Total()
	count, bytes := cmp.Compare(m, n), cmp.Compare(y, x)
	if v.ByCount {
		return cmp.Or(count, bytes)
	}
	return cmp.Or(bytes, count)
}

// compareFrames orders rows with equal sums, so that their order does not
// depend on that of the calls.
func compareFrames(a, b []sites.Frame) int {
	return slices.CompareFunc(a, b, func(x, y sites.Frame) int {
		return cmp.Or(strings.Compare(x.String(), y.String()), cmp.Compare(x.Addr, y.Addr))
	})
}

func (p *Profile) rows(depth int, v View) []*Row {
	var (
		rows  []*Row
		byKey = make(map[string]*Row)
		key   []byte
	)
	p.each(depth, v.Addresses, func(frames []sites.Frame, u *Usage) {
		key = key[:0]
		for i := range frames {
			key = frames[i].AppendKey(key)
		}
		row := byKey[string(key)]
		if row == nil {
			row = &Row{Frames: slices.Clone(frames)}
			byKey[string(key)] = row
			rows = append(rows, row)
		}
		row.Add(u)
	})
	slices.SortFunc(rows, func(a, b *Row) int {
		return cmp.Or(v.compare(&a.Allocated, &b.Allocated), compareFrames(a.Frames, b.Frames))
	})
	return rows
}

// each calls f with the frames of each place that allocated.
func (p *Profile) each(depth int, addresses bool, f func(frames []sites.Frame, u *Usage)) {
	var (
		frames []sites.Frame
		addrs  []uint64
		texts  []string
	)
	for pid, of := range p.processes.All() {
		for n := range of.usage {
			if count, _ := of.usage[n].Allocated.Total(); count == 0 {
				continue // number 0 is unused if all calls have a place
			}
			addrs, texts = addrs[:0], texts[:0]
			stack, caller := of.places.Place(uint32(n), &of.names, &addrs, &texts)
			frames = p.options.Framer.Append(frames[:0], pid, &stack, &caller, depth)
			if !addresses {
				for i := range frames {
					frames[i].ToFunction()
				}
			}
			f(frames, &of.usage[n])
		}
	}
}
