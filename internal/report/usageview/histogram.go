package usageview

import (
	"fmt"
	"math/bits"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/report/chart"
)

// maxPanels is the largest number of resource types in a histogram.
const maxPanels = 12

// histogram draws the number of blocks, or bytes, of each size.
func (p *page) histogram(r consumption.Report) {
	kinds := p.u.Kinds()
	height := 440.0
	if len(kinds) > 1 {
		height = 200
	}
	for i, k := range kinds {
		if i == maxPanels {
			break
		}
		bars := p.bars(k, r, int(float64(p.o.Width-2*margin-chart.Left)/14))
		var top uint64
		for _, b := range bars {
			top = max(top, b.Parts[0]+b.Parts[1])
		}
		c := p.panel(k.Type, height, top, r == consumption.Size && k.Type == "memory")
		c.Frame(p.Picture)
		c.Bars(p.Picture, []string{"unfreed", "freed"}, bars)
		longest := 0
		for _, b := range bars {
			longest = max(longest, len(b.Text))
		}
		p.y += max(0, 6.2*float64(longest)-gap/2)
	}
	p.name("unfreed", "unfreed")
	p.name("freed", "freed")
	p.y -= gap / 3
}

// bars returns a bar for each size. If there are more than limit, it joins
// neighbouring sizes: each power of two is divided as finely as limit permits.
func (p *page) bars(k *consumption.Kind, r consumption.Report, limit int) []chart.Bar {
	sizes := k.Sizes()
	for low := uint(9); len(sizes) > limit && low > 0; low-- {
		// Keep the leading bits of each size.
		var joined []consumption.SizeCount
		for _, s := range sizes {
			key := s.Size
			if n := uint(bits.Len64(key)); n > low {
				key = key >> (n - low) << (n - low)
			}
			if n := len(joined); n > 0 && joined[n-1].Size == key {
				joined[n-1].Allocated += s.Allocated
				joined[n-1].Freed += s.Freed
				continue
			}
			s.Size = key
			joined = append(joined, s)
		}
		if len(joined) <= limit || low == 1 {
			return p.grouped(k, r, low, joined)
		}
	}
	out := make([]chart.Bar, 0, len(sizes))
	for _, s := range sizes {
		each := uint64(1)
		if r == consumption.Size {
			each = s.Size
		}
		out = append(out, chart.Bar{Text: number(s.Size), Parts: []uint64{s.Unfreed() * each, s.Freed * each}})
	}
	return out
}

// grouped returns bars of sizes that share their leading bits.
func (p *page) grouped(k *consumption.Kind, r consumption.Report, low uint, groups []consumption.SizeCount) []chart.Bar {
	out := make([]chart.Bar, 0, len(groups))
	all := k.Sizes()
	for _, g := range groups {
		width := uint64(1)
		if n := uint(bits.Len64(g.Size)); n > low {
			width = 1 << (n - low)
		}
		bar := chart.Bar{Text: number(g.Size), Parts: []uint64{0, 0}}
		if width > 1 {
			bar.Text = fmt.Sprintf("%d–%d", g.Size, g.Size+(width-1))
		}
		for len(all) > 0 && all[0].Size-g.Size < width {
			each := uint64(1)
			if r == consumption.Size {
				each = all[0].Size
			}
			bar.Parts[0] += all[0].Unfreed() * each
			bar.Parts[1] += all[0].Freed * each
			all = all[1:]
		}
		out = append(out, bar)
	}
	return out
}
