package heapview

import (
	_ "embed" // the parts of the page
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/analysis/timeline"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/html"
	"rtrace-bpf/internal/report/svg"
	"rtrace-bpf/internal/report/theme"
)

// CurvePoints is the largest number of points of a page's curve.
const CurvePoints = 1024

// pageLimit is the largest length of a page's blocks, in bytes. The whole page
// then stays below 5 MB.
const pageLimit = 4_500_000

// The parts of the page.
var (
	//go:embed page.html
	body string
	//go:embed page.css
	style string
	//go:embed page_data.js
	scriptData string
	//go:embed page_map.js
	scriptMap string
	//go:embed page_controls.js
	scriptControls string
)

// pageColours returns the colours of a map and of its blocks by age, thread and
// so on.
func pageColours() []theme.Colour {
	all := colours()
	young := theme.Colour{Light: "#7fc4b8", Dark: "#2c6e66"}
	old := theme.Colour{Light: "#3b1c5a", Dark: "#e9d8f7"}
	for i := range 8 {
		all = append(all, theme.Mix("ramp"+strconv.Itoa(i), young, old, float64(i)/7))
	}
	for i, c := range []string{"#0072b2", "#d98200", "#009e73", "#c05a95", "#56a8dd", "#c44e00", "#7d5ba6", "#7a7f85"} {
		all = append(all, theme.Colour{Name: "sort" + strconv.Itoa(i), Light: c, Dark: c})
	}
	return all
}

// view returns the part of the regions to show first, or nil for all.
func (o *Options) view() *metaView {
	for i, r := range o.Regions {
		if o.View != (heapmap.Region{}) && r.Start <= o.View.Last && o.View.Start <= r.Last {
			start, last := max(r.Start, o.View.Start), min(r.Last, o.View.Last)
			return &metaView{Region: i, Offset: start - r.Start, Size: last - start + 1}
		}
	}
	return nil
}

// WriteHTML writes a self-contained page. curve must have processed the same
// records. The map loses the blocks that do not fit into the page.
func WriteHTML(w io.Writer, m *heapmap.Map, curve *timeline.Timeline, o Options) error {
	d, blocks, err := encode(m, o, pageLimit)
	if err != nil {
		return err
	}
	d.Curve = newCurve(curve)
	d.View = o.view()
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("writing the data of the page: %w", err)
	}
	packed, err := pack(text)
	if err != nil {
		return fmt.Errorf("packing the data of the page: %w", err)
	}
	title := "Memory map"
	if o.Name != "" {
		title += " of " + o.Name
	}
	total := curve.Totals()
	sums := fmt.Sprintf("%s, %s allocated in %s; peak %s; live at the end: %s in %s", plural(m.Events(), "event"),
		figure.Bytes(total.Allocated.Bytes), plural(total.Allocated.Blocks, "call"), figure.Bytes(total.PeakBytes),
		figure.Bytes(total.Live.Bytes), plural(total.Live.Blocks, "block"))
	step := ""
	if d.Step > 1 {
		step = "The slider moves in steps of " + plural(d.Step, "event") + "; blocks that lived only between two steps are not shown."
	}
	if d.Merged {
		step += " Neighbours of about the same age are drawn as one block."
	}
	p := html.Page{
		Title: title, Colours: pageColours(), Style: style,
		Body:   strings.NewReplacer("{{title}}", svg.Escape(title), "{{sums}}", svg.Escape(sums), "{{step}}", step).Replace(body),
		Data:   []html.Data{{ID: "meta", Value: packed}, {ID: "blocks", Value: blocks}},
		Script: scriptData + scriptMap + scriptControls,
	}
	return p.Write(w)
}
