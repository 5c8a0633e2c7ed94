// Package digestview writes a digest.Result as an HTML page with curves, a
// flame graph and sortable tables.
package digestview

import (
	"cmp"
	_ "embed" // the parts of the page
	"io"
	"strconv"
	"strings"
	"time"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/html"
	"rtrace-bpf/internal/report/svg"
	"rtrace-bpf/internal/report/theme"
)

// Options holds facts for the page that are not in the result.
type Options struct {
	File        string   // name of the trace
	Format      string   // its format with the version
	Compression []string // of the file, the outermost first
	Side        string   // name of its side file
	KnowsLoss   bool     // the format records losses itself
	Incomplete  string   // why the trace was not read to its end; empty if it was
	// Verdicts on the call sites lead the page; nil for none.
	Verdicts *Verdicts
}

// The parts of the page.
var (
	//go:embed page.html
	body string
	//go:embed page.css
	style string
	//go:embed page_data.js
	scriptData string
	//go:embed page_curve.js
	scriptCurve string
	//go:embed page_flame.js
	scriptFlame string
	//go:embed page_filter.js
	scriptFilter string
	//go:embed page_table.js
	scriptTable string
	//go:embed page_main.js
	scriptMain string
)

// colours returns the colours of the curves and the flame graph. Text is
// printed on flame0 to flame7 and on hit.
func colours() []theme.Colour {
	all := []theme.Colour{
		{Name: "live", Light: "#1a5fb4", Dark: "#7fb2f0"},
		{Name: "range", Light: "#a9c8ea", Dark: "#2f4d73"},
		{Name: "allocated", Light: "#c05621", Dark: "#e79a5f"},
		{Name: "freed", Light: "#a8d5ba", Dark: "#2f5c45"},
		{Name: "rss", Light: "#8a94a3", Dark: "#7b8697"},
		{Name: "missing", Light: "#d5d9de", Dark: "#343b45"},
		{Name: "lossy", Light: "#e9a99c", Dark: "#7d3a2c"},
		{Name: "context", Light: "#e6dcf2", Dark: "#352a45"},
		{Name: "hit", Light: "#ffd23f", Dark: "#f2c12e"},
		{Name: "onhit", Light: "#1c2229", Dark: "#14171c"},
	}
	for i, c := range [][2]string{
		{"#f5c9a8", "#6b3f1d"},
		{"#b9d6f2", "#24476b"},
		{"#c4e3c9", "#255038"},
		{"#e6cdea", "#533061"},
		{"#f3dfa2", "#5c4a12"},
		{"#b9e2e0", "#1c5250"},
		{"#f4c6cf", "#6a2c3b"},
		{"#dde1e6", "#3b434d"},
	} {
		all = append(all, theme.Colour{Name: "flame" + strconv.Itoa(i), Light: c[0], Dark: c[1]})
	}
	return all
}

// WriteHTML writes a self-contained page.
func WriteHTML(w io.Writer, r *digest.Result, o Options) error {
	name := title(r, &o)
	p := html.Page{
		Title: "Allocations of " + name, Colours: colours(), Style: style,
		Body: strings.NewReplacer(
			"{{name}}", svg.Escape(name), "{{verdicts}}", verdictSection(o.Verdicts, r.RSS), "{{facts}}", factList(r, &o), "{{notes}}", noteList("About this trace", notes(r, &o)),
		).Replace(body),
		Data:   []html.Data{{ID: "data", Value: build(r)}},
		Script: scriptData + scriptCurve + scriptFlame + scriptTable + scriptFilter + scriptMain,
	}
	return p.Write(w)
}

// title returns the name of the program or, if that is unknown, of the file.
func title(r *digest.Result, o *Options) string {
	name := cmp.Or(r.Became, r.Process.Program(), o.File)
	name = name[strings.LastIndexByte(name, '/')+1:]
	if name == "" {
		name = "an unknown program"
	}
	return shorten(sites.Printable(name))
}

// factList returns an HTML list of facts about the recording.
func factList(r *digest.Result, o *Options) string {
	var b strings.Builder
	fact := func(name, text string) {
		if text != "" {
			b.WriteString("<div><dt>" + name + "</dt><dd>" + svg.Escape(shorten(sites.Printable(text))) + "</dd></div>\n")
		}
	}
	process := r.Process.Name
	if r.Became != "" {
		process = strings.TrimPrefix(process+", then "+r.Became, ", then ")
	}
	if r.PID > 0 {
		process = strings.TrimSpace(process + ", process " + strconv.Itoa(int(r.PID)))
	}
	fact("Program", strings.TrimPrefix(process, ", "))
	fact("When", when(r))
	fact("Duration", duration(r))
	calls := plural(r.Calls, "call")
	if r.Duration > 0 && r.Calls > 1 {
		calls += ", " + figure.Short(uint64(float64(r.Calls)/(float64(r.Duration)/1e9))) + " per second"
	}
	fact("Calls", calls)
	fact("Traced by", tracedBy(r))
	machine := r.Header.Arch
	if r.Header.PointerSize > 0 {
		machine = strings.TrimPrefix(machine+", "+strconv.Itoa(8*r.Header.PointerSize)+"-bit", ", ")
	}
	fact("Machine", machine)
	format := strings.Join(append([]string{o.Format}, o.Compression...), ", in ")
	if o.Side != "" {
		format += ", with its side file"
	}
	fact("Format", format)
	fact("File", o.File)
	if r.HeapGrown.Blocks > 0 {
		fact("From the system", figure.Bytes(r.HeapGrown.Bytes)+" in "+plural(r.HeapGrown.Blocks, "step"))
	}
	lost, gaps := uint64(0), uint64(0)
	for _, l := range r.Lost {
		if l.Gap {
			gaps += l.Count
		} else {
			lost += l.Count
		}
	}
	switch {
	case lost > 0 && gaps > 0:
		fact("Lost", plural(lost, "event")+", and everything during "+plural(gaps, "gap")+" in the recording; see below")
	case lost > 0:
		fact("Lost", plural(lost, "event")+"; see below")
	case gaps > 0:
		fact("Lost", "everything during "+plural(gaps, "gap")+" in the recording; see below")
	case o.Side == "" && !o.KnowsLoss:
		fact("Lost", "unknown: the format does not record it")
	default:
		fact("Lost", "nothing")
	}
	return b.String()
}

// when returns the start of the recording, or an empty string if it is unknown.
func when(r *digest.Result) string {
	at := began(r)
	if at == 0 {
		return ""
	}
	return time.Unix(0, at).UTC().Format("2 January 2006, 15:04:05 UTC")
}

// duration returns the length of the recording, and of the part with calls, or an empty string.
func duration(r *digest.Result) string {
	if r.Duration == 0 {
		return ""
	}
	calls := figure.Seconds(uint64(r.Duration)) + " from the first to the last call"
	if whole := r.Recording.End - r.Recording.Begin; whole > r.Duration {
		return figure.Seconds(uint64(whole)) + ", " + calls
	}
	return calls
}

func tracedBy(r *digest.Result) string {
	var parts []string
	if r.Header.Origin != "" {
		parts = append(parts, r.Header.Origin)
	}
	switch {
	case r.Depth == 0:
		parts = append(parts, "without stacks")
	case r.Depth > 0:
		parts = append(parts, "stacks of up to "+plural(uint64(r.Depth), "frame"))
	}
	return strings.Join(parts, ", ")
}

func noteList(title string, notes []note) string {
	if len(notes) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<section class=\"notes\" aria-labelledby=\"notes-title\"><h2 id=\"notes-title\">" + title + "</h2>\n<ul>\n")
	for _, warn := range []bool{true, false} {
		for _, n := range notes {
			if n.warn != warn {
				continue
			}
			class := ""
			if warn {
				class = " class=\"warn\""
			}
			b.WriteString("<li" + class + ">" + svg.Escape(sites.Printable(n.text)) + "</li>\n")
		}
	}
	b.WriteString("</ul></section>\n")
	return b.String()
}
