package explain

import (
	"cmp"
	"slices"
)

// Since sets d.Drift to the changes since an earlier reading of the same process.
func (d *Document) Since(before *Document) {
	drift := &Drift{
		Seconds:  d.Time.Sub(before.Time).Seconds(),
		Resident: int64(d.Resident - before.Resident),
		Rows:     []Change{},
	}
	type key struct {
		kind Kind
		what string
	}
	old := map[key]Row{}
	for _, r := range before.Rows {
		old[key{r.Kind, r.What}] = r
	}
	add := func(r, was Row) {
		c := Change{
			Kind: r.Kind, What: r.What, Resident: int64(r.Resident - was.Resident),
			Size: int64(r.Size - was.Size), Count: int64(r.Count - was.Count),
		}
		if c.Resident != 0 || c.Size != 0 || c.Count != 0 {
			drift.Rows = append(drift.Rows, c)
		}
	}
	for _, r := range d.Rows {
		k := key{r.Kind, r.What}
		add(r, old[k])
		delete(old, k)
	}
	for _, was := range old {
		add(Row{Kind: was.Kind, What: was.What}, was)
	}
	slices.SortFunc(drift.Rows, func(a, b Change) int {
		return cmp.Or(cmp.Compare(magnitude(b.Resident), magnitude(a.Resident)), cmp.Compare(magnitude(b.Size), magnitude(a.Size)), cmp.Compare(a.What, b.What))
	})
	d.Drift = drift
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return uint64(-n)
	}
	return uint64(n)
}
