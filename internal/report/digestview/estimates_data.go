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
	boxNames
	Values [2]float64 `json:"values"` // blocks and bytes
	// Text has them with their errors, and then both per second.
	Text [4]string `json:"text"`
}

// boxNames are the names of a call site or a box: numbers of Texts.
type boxNames struct {
	Name    int  `json:"name"`
	Parent  int  `json:"parent,omitempty"` // the number of a box
	Short   int  `json:"short,omitempty"`  // the name as a box shows it if that is shorter
	Module  int  `json:"module,omitempty"`
	Inlined bool `json:"inlined,omitempty"`
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
			boxNames: boxNames{Name: b.text(sites.Printable(s.Text))}, Values: [2]float64{s.Blocks.Value, s.Bytes.Value}, Text: estimatedText(&s.Allocated, e.Length),
		})
	}
	p.Left = len(e.Sites) - len(kept)
	share := func(i int) float64 {
		x := &e.Boxes[i]
		return max(x.Blocks.Value/max(1, e.Total.Blocks.Value), x.Bytes.Value/max(1, e.Total.Bytes.Value))
	}
	p.Cut = b.largestBoxes(len(e.Boxes), share, func(i int) (int, *sites.Frame) { return e.Boxes[i].Parent, &e.Boxes[i].Frame }, func(i int, names boxNames) {
		x := &e.Boxes[i].Allocated
		p.Boxes = append(p.Boxes, estimatedData{names, [2]float64{x.Blocks.Value, x.Bytes.Value}, estimatedText(x, e.Length)})
	})
	p.Texts = b.Texts
	return p
}

// largestBoxes calls keep for the boxes with the largest shares, and returns how many are left out. A
// box has at least what those below it have, so the parent of each box is kept, before it.
func (b *builder) largestBoxes(boxes int, share func(int) float64, frame func(int) (parent int, of *sites.Frame), keep func(int, boxNames)) (cut int) {
	order := make([]int, boxes)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Or(cmp.Compare(share(y), share(x)), cmp.Compare(x, y)) })
	number := make(map[int]int)
	for _, i := range order {
		of, f := frame(i)
		parent, known := number[of]
		if i > 0 && (!known || len(number) == maxBoxes || b.left < frameText) {
			cut++
			continue
		}
		number[i] = len(number)
		names := boxNames{}
		if i > 0 {
			names = b.names(f)
		}
		names.Parent = parent
		keep(i, names)
	}
	return cut
}

// names returns the names of the box of a frame.
func (b *builder) names(f *sites.Frame) (n boxNames) {
	label := sites.Printable(f.Label())
	n.Name, n.Module, n.Inlined = b.text(label), b.text(sites.Printable(f.Module)), f.Inlined
	if short := shortname.Of(label); short != label {
		n.Short = b.text(short)
	}
	return n
}
