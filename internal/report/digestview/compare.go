package digestview

import (
	_ "embed" // the parts of the page
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/live"
	"rtrace-bpf/internal/report/html"
	"rtrace-bpf/internal/report/theme"
)

// Comparison holds what two traces left live, by stack.
type Comparison struct {
	Before, After string   // names of the traces
	Notes         []string // what is compared, and what is missing from it; sentences
	Rows          []Compared
}

// Compared is a stack of two traces. A stack that is in one of them only has no blocks in the other.
type Compared struct {
	Frames        []sites.Frame // the innermost first
	Before, After live.Amount
}

var (
	//go:embed compare.html
	compareBody string
	//go:embed page_compare.js
	scriptCompare string
)

// growthColours returns the colours of boxes that grew or shrank, from a little to much. Orange and
// blue differ for all kinds of colour blindness. Text is printed on them.
func growthColours() []theme.Colour {
	return []theme.Colour{
		{Name: "up1", Light: "#fde3d0", Dark: "#45301f"},
		{Name: "up2", Light: "#f7b98b", Dark: "#6b3f1d"},
		{Name: "up3", Light: "#e98a45", Dark: "#8f4a14"},
		{Name: "down1", Light: "#dbe9f8", Dark: "#22364d"},
		{Name: "down2", Light: "#a9c8ea", Dark: "#284a70"},
		{Name: "down3", Light: "#6f9fd8", Dark: "#2b5c94"},
	}
}

// WriteComparison writes a self-contained page with a differential flame graph and tables of what
// changed between two traces. It has the size limits of WriteHTML.
func WriteComparison(w io.Writer, c *Comparison) error {
	var notes []note
	for _, text := range c.Notes {
		notes = append(notes, note{text: text})
	}
	p := html.Page{
		Title: "Growth from " + shorten(sites.Printable(c.Before)) + " to " + shorten(sites.Printable(c.After)), Colours: append(colours(), growthColours()...), Style: style,
		Body:   strings.NewReplacer("{{before}}", escaped(c.Before), "{{after}}", escaped(c.After), "{{notes}}", noteList("What is compared", notes)).Replace(compareBody),
		Data:   []html.Data{{ID: "data", Value: buildComparison(c)}},
		Script: scriptData + scriptFlame + scriptTable + scriptCompare,
	}
	return p.Write(w)
}

// buildComparison returns the data of the page. It holds the stacks as those of a resource, whose
// uses are the amounts before, after, grown, and shrunk.
func buildComparison(c *Comparison) *page {
	r := &digest.Result{}
	of := &digest.Resource{Type: digest.Memory, Desc: "memory in bytes"}
	numbers := make(map[string]uint32)
	var key []byte
	for i := range c.Rows {
		row := &c.Rows[i]
		var p digest.Place
		for k := range row.Frames {
			f := row.Frames[k]
			key = f.AppendKey(key[:0])
			n, ok := numbers[string(key)]
			if !ok {
				n = uint32(len(r.Frames))
				numbers[string(key)] = n
				r.Frames = append(r.Frames, f)
			}
			p.Frames = append(p.Frames, n)
		}
		p.Live, p.AtPeak = row.Before, row.After
		p.Allocated.Blocks, p.Temporary.Blocks = changes(row.Before.Blocks, row.After.Blocks)
		p.Allocated.Bytes, p.Temporary.Bytes = changes(row.Before.Bytes, row.After.Bytes)
		for _, sum := range []struct{ to, of *live.Amount }{
			{&of.Total.Live, &p.Live}, {&of.Total.AtPeak, &p.AtPeak}, {&of.Total.Allocated, &p.Allocated}, {&of.Total.Temporary, &p.Temporary},
		} {
			sum.to.Add(*sum.of)
		}
		of.Places = append(of.Places, p)
		of.Largest = max(of.Largest, row.Before.Bytes, row.After.Bytes)
		of.Stacks.Deepest = max(of.Stacks.Deepest, len(p.Frames))
	}
	r.Resources = []*digest.Resource{of}
	return build(r)
}

// changes returns by how much a number grew or shrank.
func changes(before, after uint64) (grown, shrunk uint64) {
	if after > before {
		return after - before, 0
	}
	return 0, before - after
}
