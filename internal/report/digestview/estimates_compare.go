package digestview

import (
	_ "embed" // the parts of the page
	"io"
	"math"
	"strings"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/html"
	"rtrace-bpf/internal/report/svg"
)

// EstimatesComparison is what two traces that were recorded in windows estimate. All amounts are per
// second, because the recordings may differ in length.
type EstimatesComparison struct {
	Before, After string    // names of the traces
	Windows       [2]string // lines about their windows
	Total         ComparedRates
	Sites         []ComparedSite // the largest growth first
	Boxes         []ComparedBox  // of the flame graph; the first one is the root
}

// ComparedRates are what is allocated per second, before and after.
type ComparedRates struct{ Before, After estimate.Allocated }

// ComparedSite is a call site of both traces.
type ComparedSite struct {
	Text string
	ComparedRates
}

// ComparedBox is a box of the flame graph. Its parent comes before it.
type ComparedBox struct {
	Parent int
	Frame  sites.Frame
	ComparedRates
}

var (
	//go:embed estimates_compare.html
	estimatesCompareBody string
	//go:embed page_estimates_compare.js
	scriptEstimatesCompare string
)

// WriteEstimatesComparison writes a self-contained page with the differences of two traces that were
// recorded in windows, and their errors.
func WriteEstimatesComparison(w io.Writer, c *EstimatesComparison) error {
	notes := []note{
		{warn: true, text: "Live bytes and leaks are not known: windows miss frees. To see what grows, record with rtrace-bpf record -e growth."},
		{text: "Compared are allocations per second. Before: " + c.Windows[0] + ". After: " + c.Windows[1] + "."},
		{text: "The interval of a difference contains the true one with 95 %. A box or row has a colour only if it excludes 0: of 100 that did not change, about five have one by chance."},
	}
	p := html.Page{
		Title: "Allocations from " + shorten(sites.Printable(c.Before)) + " to " + shorten(sites.Printable(c.After)), Colours: append(colours(), growthColours()...), Style: style,
		Body: strings.NewReplacer(
			"{{before}}", escaped(c.Before), "{{after}}", escaped(c.After), "{{lead}}", c.lead(), "{{notes}}", noteList("What is compared", notes),
		).Replace(estimatesCompareBody),
		Data:   []html.Data{{ID: "data", Value: buildEstimatesComparison(c)}},
		Script: scriptData + scriptFlame + scriptTable + scriptEstimatesCompare,
	}
	return p.Write(w)
}

// lead returns the section that begins the page.
func (c *EstimatesComparison) lead() string {
	bytes, blocks := c.Total.differences()
	changed := 0
	for i := range c.Sites {
		b, n := c.Sites[i].differences()
		ofBytes, _ := b.Clear()
		ofBlocks, _ := n.Clear()
		if ofBytes || ofBlocks {
			changed++
		}
	}
	return `<section class="verdict" aria-label="The difference"><p class="words">` + svg.Escape("Per second: "+bytes.RateText()+" bytes, "+blocks.RateText()+" blocks.") + "</p>\n<p>" +
		svg.Escape(figure.Count(uint64(changed))+" of "+plural(uint64(len(c.Sites)), "call site")+" changed: their interval excludes 0.") + "</p></section>\n"
}

func (r *ComparedRates) differences() (bytes, blocks estimate.Difference) {
	return estimate.Between(r.Before.Bytes, r.After.Bytes), estimate.Between(r.Before.Blocks, r.After.Blocks)
}

// comparedPage is the data for the script of the page.
type comparedPage struct {
	Texts []string       `json:"texts"`
	Sites []comparedData `json:"sites"`
	Left  int            `json:"left"`
	Boxes []comparedData `json:"boxes"`
	Cut   int            `json:"cut"`
}

// comparedData is a call site or a box. Pairs are of blocks and of bytes.
type comparedData struct {
	boxNames
	Before [2]float64 `json:"before"`
	After  [2]float64 `json:"after"`
	Change [2]int     `json:"change"` // 1 if it certainly became more, -1 if less, else 0
	Text   [6]string  `json:"text"`   // before, after and the difference, of blocks and then of bytes
}

func (r *ComparedRates) data() (d comparedData) {
	bytes, blocks := r.differences()
	for i, x := range []struct {
		before, after estimate.Estimate
		estimate.Difference
	}{{r.Before.Blocks, r.After.Blocks, blocks}, {r.Before.Bytes, r.After.Bytes, bytes}} {
		d.Before[i], d.After[i] = x.before.Value, x.after.Value
		copy(d.Text[3*i:], []string{x.before.RateText(), x.after.RateText(), x.RateText()})
		if sure, more := x.Clear(); sure && more {
			d.Change[i] = 1
		} else if sure {
			d.Change[i] = -1
		}
	}
	return d
}

func buildEstimatesComparison(c *EstimatesComparison) *comparedPage {
	b := builder{texts: map[string]int{"": 0}, left: maxText}
	b.Texts = []string{""}
	p := &comparedPage{Sites: []comparedData{}, Boxes: []comparedData{}}
	for i := range c.Sites {
		// The largest growth and the largest decrease.
		if i >= maxRows/2 && i < len(c.Sites)-maxRows/2 {
			p.Left++
			continue
		}
		d := c.Sites[i].data()
		d.Name = b.text(sites.Printable(c.Sites[i].Text))
		p.Sites = append(p.Sites, d)
	}
	whole := &c.Total
	share := func(i int) float64 {
		x := &c.Boxes[i].ComparedRates
		part := func(of, all estimate.Estimate) float64 { return of.Value / math.Max(1e-9, all.Value) }
		return max(part(x.Before.Blocks, whole.Before.Blocks), part(x.Before.Bytes, whole.Before.Bytes), part(x.After.Blocks, whole.After.Blocks), part(x.After.Bytes, whole.After.Bytes))
	}
	p.Cut = b.largestBoxes(len(c.Boxes), share, func(i int) (int, *sites.Frame) { return c.Boxes[i].Parent, &c.Boxes[i].Frame }, func(i int, names boxNames) {
		d := c.Boxes[i].data()
		d.boxNames = names
		p.Boxes = append(p.Boxes, d)
	})
	p.Texts = b.Texts
	return p
}
