package digestview

import (
	"cmp"
	"slices"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/shortname"
)

// maxBoxes is how many boxes of a flame graph of estimates a page has, at most.
const maxBoxes = 10_000

// estimatesPage is the data for the script of a page of estimates. Times are in ns since the first
// window opened.
type estimatesPage struct {
	Length int64           `json:"length"`
	Rates  []rateData      `json:"rates"`
	Texts  []string        `json:"texts"`
	Sites  []estimatedData `json:"sites"`
	Left   int             `json:"left"` // call sites that are left out
	Boxes  []estimatedData `json:"boxes"`
	Cut    int             `json:"cut"` // boxes that are left out
}

// rateData is one window or several successive ones: when the first one opened and the last one
// closed, how long they were open, what they stand for, their number, and the mean blocks and bytes
// per second.
type rateData [7]float64

// maxRates is how many of them a page has, at most.
const maxRates = 4096

// rateColumns returns the rates of windows, of several ones together if there are many.
func rateColumns(rates []estimate.Rate) []rateData {
	out := []rateData{}
	each := (len(rates) + maxRates - 1) / maxRates
	for i := range rates {
		r := &rates[i]
		if i%each == 0 {
			out = append(out, rateData{0: float64(r.From)})
		}
		x := &out[len(out)-1]
		x[1] = float64(r.To)
		x[2] += float64(r.To - r.From)
		x[3] += r.Stretch
		x[4]++
		x[5] += (r.Blocks - x[5]) * r.Stretch / x[3]
		x[6] += (r.Bytes - x[6]) * r.Stretch / x[3]
	}
	return out
}

// estimatedData is a call site or a box.
type estimatedData struct {
	Name    int        `json:"name"`             // in Texts
	Parent  int        `json:"parent,omitempty"` // of a box
	Short   int        `json:"short,omitempty"`  // the name as a box shows it if that is shorter
	Module  int        `json:"module,omitempty"`
	Inlined bool       `json:"inlined,omitempty"`
	Values  [2]float64 `json:"values"` // blocks and bytes
	// Text has them with their errors, and then both per second.
	Text [4]string `json:"text"`
}

func estimatedText(a *estimate.Allocated, length int64) [4]string {
	return [4]string{a.Blocks.Text(), a.Bytes.Text(), a.Blocks.Per(length).RateText(), a.Bytes.Per(length).RateText()}
}

func buildEstimates(e *Estimates) *estimatesPage {
	b := builder{texts: map[string]int{"": 0}, left: maxText}
	b.Texts = []string{""}
	p := &estimatesPage{Length: e.Length, Rates: rateColumns(e.Rates), Sites: []estimatedData{}, Boxes: []estimatedData{}}
	kept := e.Sites[:min(maxRows, len(e.Sites))]
	for i := range kept {
		s := &kept[i]
		p.Sites = append(p.Sites, estimatedData{
			Name: b.text(sites.Printable(s.Text)), Values: [2]float64{s.Blocks.Value, s.Bytes.Value}, Text: estimatedText(&s.Allocated, e.Length),
		})
	}
	p.Left = len(e.Sites) - len(kept)
	p.Boxes, p.Cut = b.estimatedBoxes(e)
	p.Texts = b.Texts
	return p
}

// estimatedBoxes returns the boxes with the largest shares of the blocks or bytes. A box has at least
// what those below it have, so the parent of each box is among them, and before it.
func (b *builder) estimatedBoxes(e *Estimates) (kept []estimatedData, cut int) {
	share := func(i int) float64 {
		x := &e.Boxes[i]
		return max(x.Blocks.Value/max(1, e.Total.Blocks.Value), x.Bytes.Value/max(1, e.Total.Bytes.Value))
	}
	order := make([]int, len(e.Boxes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Or(cmp.Compare(share(y), share(x)), cmp.Compare(x, y)) })
	number := make(map[int]int)
	for _, i := range order {
		x := &e.Boxes[i]
		parent, drawn := number[x.Parent]
		if i > 0 && (!drawn || len(kept) == maxBoxes || b.left < frameText) {
			cut++
			continue
		}
		number[i] = len(kept)
		d := estimatedData{
			Parent: parent, Inlined: x.Frame.Inlined, Values: [2]float64{x.Blocks.Value, x.Bytes.Value}, Text: estimatedText(&x.Allocated, e.Length),
		}
		if i > 0 {
			label := sites.Printable(x.Frame.Label())
			d.Name, d.Module = b.text(label), b.text(sites.Printable(x.Frame.Module))
			if short := shortname.Of(label); short != label {
				d.Short = b.text(short)
			}
		}
		kept = append(kept, d)
	}
	return kept, cut
}
