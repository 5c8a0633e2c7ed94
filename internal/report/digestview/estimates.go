package digestview

import (
	_ "embed" // the parts of the page
	"io"
	"strconv"
	"strings"
	"time"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/html"
	"rtrace-bpf/internal/report/svg"
)

// Estimates are what is known of a trace that was recorded in windows.
type Estimates struct {
	Name    string // of the program, or of the file
	Process string // its command, as the trace has it
	PID     int32  // 0 if unknown
	Origin  string // what recorded it
	Arch    string
	Start   int64  // ns since 1970; 0 if unknown
	Lost    uint64 // events
	// Windows is the line about them, and Cost are lines about what recording cost.
	Windows string
	Cost    []string
	Length  int64 // ns that the sums are for
	Total   estimate.Allocated
	Rates   []estimate.Rate
	Sites   []EstimatedSite // the largest first
	Boxes   []EstimatedBox  // of the flame graph; the first one is the root
}

// EstimatedSite is a call site.
type EstimatedSite struct {
	Text string
	estimate.Allocated
}

// EstimatedBox is a box of the flame graph. Its parent comes before it.
type EstimatedBox struct {
	Parent int
	Frame  sites.Frame
	estimate.Allocated
}

var (
	//go:embed estimates.html
	estimatesBody string
	//go:embed page_estimates.js
	scriptEstimates string
)

// WriteEstimates writes a self-contained page about a trace that was recorded in windows.
func WriteEstimates(w io.Writer, e *Estimates, o Options) error {
	name := shorten(sites.Printable(e.Name[strings.LastIndexByte(e.Name, '/')+1:]))
	p := html.Page{
		Title: "Estimated allocations of " + name, Colours: colours(), Style: style,
		Body: strings.NewReplacer(
			"{{name}}", svg.Escape(name), "{{lead}}", e.lead(), "{{facts}}", e.facts(&o), "{{notes}}", noteList("About this trace", e.notes(&o)),
		).Replace(estimatesBody),
		Data:   []html.Data{{ID: "data", Value: buildEstimates(e)}},
		Script: scriptData + scriptCurve + scriptFlame + scriptTable + scriptEstimates,
	}
	return p.Write(w)
}

// lead returns the section that begins the page.
func (e *Estimates) lead() string {
	text := func(class, s string) string {
		return "<p" + class + ">" + svg.Escape(sites.Printable(s)) + "</p>\n"
	}
	pid := "PID"
	if e.PID > 0 {
		pid = strconv.Itoa(int(e.PID))
	}
	out := `<section class="verdict" aria-label="What is known">` + "\n" +
		text(` class="words"`, "Allocated: "+e.Total.Blocks.Text()+" blocks, "+e.Total.Bytes.Text()+" bytes. Per second: "+
			e.Total.Blocks.Per(e.Length).RateText()+" blocks, "+e.Total.Bytes.Per(e.Length).RateText()+" bytes.") +
		text("", "All figures are "+e.Windows+". The interval after ± or in brackets contains the true value with 95 %; “at least” means that more is not known.") +
		`<p class="warn">Live bytes, peaks, temporary blocks and leaks are not known: windows miss frees. This records what grows: <code>sudo rtrace-bpf record -e growth -p ` + pid + "</code></p>\n"
	return out + "</section>\n"
}

// facts returns an HTML list of facts about the recording.
func (e *Estimates) facts(o *Options) string {
	var b strings.Builder
	fact := func(name, text string) {
		if text != "" {
			b.WriteString("<div><dt>" + name + "</dt><dd>" + svg.Escape(shorten(sites.Printable(text))) + "</dd></div>\n")
		}
	}
	process := e.Process
	if e.PID > 0 {
		process += ", process " + strconv.Itoa(int(e.PID))
	}
	fact("Program", strings.TrimPrefix(process, ", "))
	if e.Start != 0 {
		fact("When", time.Unix(0, e.Start).UTC().Format("2 January 2006, 15:04:05 UTC"))
	}
	fact("Duration", figure.Seconds(uint64(max(0, e.Length))))
	fact("Traced by", e.Origin)
	fact("Machine", e.Arch)
	fact("Format", strings.Join(append([]string{o.Format}, o.Compression...), ", in "))
	fact("File", o.File)
	return b.String()
}

// notes returns remarks about the recording.
func (e *Estimates) notes(o *Options) (out []note) {
	if o.Incomplete != "" {
		out = append(out, note{true, "The trace could not be read to its end: " + o.Incomplete + ". The figures cover the part before that."})
	}
	if e.Lost > 0 {
		out = append(out, note{true, "Lost " + plural(e.Lost, "event") + " while recording: the estimates are too low by what these stand for."})
	}
	for i, text := range e.Cost {
		out = append(out, note{text: []string{"Cost: ", "Budget: "}[i] + text + "."})
	}
	return out
}
