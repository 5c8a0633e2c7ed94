package pageview

import (
	"maps"
	"slices"

	"rtrace-bpf/internal/analysis/pagemap"
)

// kinds counts pages by kind.
type kinds struct {
	all, dirty, dirtyZero, swapped, swappedZero uint64
}

// add counts a page and returns its mark.
func (k *kinds) add(p *pagemap.Page) byte {
	k.all++
	zero := p.Info&pagemap.Zero != 0
	pick := func(count, countZero *uint64, mark, markZero byte) byte {
		*count++
		if zero {
			*countZero++
			return markZero
		}
		return mark
	}
	switch {
	case p.Info&pagemap.Swapped != 0:
		return pick(&k.swapped, &k.swappedZero, 'S', 'Z')
	case p.Dirty():
		return pick(&k.dirty, &k.dirtyZero, '#', '0')
	case zero:
		return ' '
	}
	return '.'
}

// kinds prints the counts. As in the original, all pages that are not swapped
// count as in memory, even those without memory.
func (w *writer) kinds(k *kinds) {
	w.printf("type:           pages:     kB:  of area:  of all writable:\n")
	ram := k.all - k.swapped
	for _, row := range [...]struct {
		name   string
		pages  uint64
		always bool
	}{
		{"all", k.all, true},
		{"dirty RAM", k.dirty, false},
		{"dirty RAM + Z", k.dirtyZero, false},
		{"swapped", k.swapped, false},
		{"swapped + Z", k.swappedZero, false},
		{"in RAM", ram, true},
	} {
		if row.pages > 0 || row.always {
			w.printf("%-13s%8d%8d%8d%%%8d%%\n", row.name, row.pages, row.pages*w.PageSize/1024, row.pages*100/k.all, row.pages*100/w.total)
		}
	}
	w.printf("\n")
}

// summary prints the number of pages of all areas by their flags.
func (w *writer) summary() error {
	counts := make(map[uint64]uint64)
	used := uint64(0)
	for i := range w.Areas {
		a := &w.Areas[i]
		if !a.Write || !w.Pages.Has(a) {
			continue
		}
		for page := range a.Pages(w.PageSize) {
			p, _, err := w.Pages.Page(a, page)
			if err != nil {
				return err
			}
			flags := pagemap.Shown(p.Flags)
			counts[flags]++
			used |= flags
		}
	}
	w.printf("Memory page type summary\n========================\n\nCount    Flags\n")
	for _, flags := range slices.Sorted(maps.Keys(counts)) {
		w.printf("%8d %s\n", counts[flags], pagemap.Marks(flags, used))
	}
	w.printf("\nLegend:\n")
	for i, f := range pagemap.Flags {
		if used&(1<<i) != 0 && f.Mark != 0 {
			w.printf("\t%c : %s\n", f.Mark, f.Name)
		}
	}
	return nil
}
