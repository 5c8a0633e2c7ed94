package profile

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
)

// Row is what comes from one place.
type Row struct {
	Frames []sites.Frame // from the innermost; not empty
	Usage
}

// View says how rows and graphs are made.
type View struct {
	Addresses bool // tell apart the places within one function
	ByCount   bool // the most blocks first instead of the most bytes
}

// Direct returns what each function allocates itself, the most first.
func (p *Profile) Direct(v View) []*Row { return p.rows(1, v) }

// Leaks returns what is unfreed by stacks of at most depth functions, the most
// first. All frames count if depth is 0.
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

// compareFrames gives what has the same sums an order that does not depend on
// that of the calls.
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

// each calls f with the frames of each place that something was allocated from.
func (p *Profile) each(depth int, addresses bool, f func(frames []sites.Frame, u *Usage)) {
	var (
		frames []sites.Frame
		addrs  []uint64
		texts  []string
	)
	for pid, of := range p.processes.All() {
		for n := range of.usage {
			if count, _ := of.usage[n].Allocated.Total(); count == 0 {
				continue // number 0, if all calls have a place
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
