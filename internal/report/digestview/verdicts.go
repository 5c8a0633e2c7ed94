package digestview

import (
	"fmt"
	"strings"

	"rtrace-bpf/internal/analysis/rss"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/report/figure"
	"rtrace-bpf/internal/report/shortname"
	"rtrace-bpf/internal/report/svg"
	"rtrace-bpf/internal/report/verdict"
)

// Verdicts holds what the call sites of a trace do over time.
type Verdicts struct {
	Observed verdict.Observation
	Suspects []Site // the first one first
	Steady   []Site // those of the others with the most live bytes, which come first
	More     int    // call sites with live blocks that are in neither list
}

// Site is a call site with a verdict, or several that leak together.
type Site struct {
	Name   string // of the function, or its address; of several what they have in common
	Where  string // the source line or the module; empty if unknown
	Type   string // of resource; empty for memory
	Trend  trend.Trend
	Frames []sites.Frame // the innermost first; of several none
	Parts  []Site        // of several
}

// verdictSection returns the first section of the page: which call sites are
// suspects, and how the resident memory grew.
func verdictSection(v *Verdicts, g *rss.Growth) string {
	if v == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("<section class=\"verdict\" id=\"verdict\" aria-labelledby=\"verdict-title\"><h2 id=\"verdict-title\">Suspects</h2>\n")
	if len(v.Suspects) == 0 {
		b.WriteString("<p class=\"words\">" + svg.Escape(sentence(v.Observed.None())) + "</p>\n")
	} else {
		b.WriteString(suspectLists(v.Suspects) + "<p class=\"muted\">A suspect is not a proven leak: the program may free the blocks after the recording.</p>\n")
	}
	for _, text := range v.Observed.Doubts() {
		b.WriteString("<p class=\"warn\">" + svg.Escape(sentence(text)) + "</p>\n")
	}
	b.WriteString(growthList(g))
	b.WriteString(steadyTable(v))
	b.WriteString("</section>\n")
	return b.String()
}

// firstSuspects is the number of suspects that are not folded away.
const firstSuspects = 3

// suspectLists returns the items of suspects: the first ones, and the others folded away.
func suspectLists(all []Site) string {
	var b strings.Builder
	items := func(from, to int) {
		fmt.Fprintf(&b, "<ol class=\"suspects\" start=\"%d\">\n", from+1)
		for i := from; i < to; i++ {
			b.WriteString(suspectItem(&all[i], i == 0))
		}
		b.WriteString("</ol>\n")
	}
	if len(all) <= firstSuspects+1 { // a line for one more would save nothing
		items(0, len(all))
		return b.String()
	}
	items(0, firstSuspects)
	var bytes uint64
	for i := firstSuspects; i < len(all); i++ {
		bytes += all[i].Trend.Live.Bytes
	}
	fmt.Fprintf(&b, "<details class=\"others\"><summary>%s</summary>\n",
		svg.Escape(fmt.Sprintf("%s, %s live now", plural(uint64(len(all)-firstSuspects), "more suspect"), figure.Bytes(bytes))))
	items(firstSuspects, len(all))
	b.WriteString("</details>\n")
	return b.String()
}

// suspectItem returns the item of a suspect. The stack of the first one is open.
func suspectItem(s *Site, first bool) string {
	text := "<li><p>" + siteName(s) + "</p>\n<p class=\"words\">" + svg.Escape(sentence(verdict.Text(&s.Trend))) + "</p>\n" +
		"<p class=\"muted\">" + svg.Escape("Live now: "+amountText(s)+".") + "</p>\n"
	if len(s.Parts) == 0 {
		return text + stackDetails(s, first) + "</li>\n"
	}
	text += "<ul class=\"parts\">\n"
	for i := range s.Parts {
		p := &s.Parts[i]
		text += "<li>" + siteName(p) + " <span class=\"muted\">" + svg.Escape(amountText(p)) + "</span>\n" + stackDetails(p, first && i == 0) + "</li>\n"
	}
	return text + "</ul></li>\n"
}

// stackDetails returns the stack of a site, which can be opened.
func stackDetails(s *Site, open bool) string {
	attribute := ""
	if open {
		attribute = " open"
	}
	return "<details" + attribute + "><summary>Stack</summary>" + frameList(s.Frames) + "</details>"
}

// siteName returns the name of a site as HTML, shortened, with the whole name as its title. The
// direction of its text does not affect what surrounds it.
func siteName(s *Site) string {
	prefix, title := "", ""
	if s.Type != "" {
		prefix = s.Type + ": "
	}
	short := shortname.Of(s.Name)
	if short != s.Name {
		title = " title=\"" + escaped(s.Name) + "\""
	}
	text := "<bdi class=\"mono site\"" + title + ">" + escaped(prefix+short) + "</bdi>"
	if s.Where != "" {
		text += " <bdi class=\"muted\">" + escaped(s.Where) + "</bdi>"
	}
	return text
}

// frameList returns the frames of a stack as a list.
func frameList(frames []sites.Frame) string {
	var b strings.Builder
	b.WriteString("<ol class=\"frames mono\">")
	for i := range frames {
		b.WriteString("<li><bdi>" + escaped(frames[i].String()) + "</bdi></li>")
	}
	b.WriteString("</ol>")
	return b.String()
}

// growthList returns how the resident memory grew compared with the blocks, or
// an empty string if that is unknown.
func growthList(g *rss.Growth) string {
	if g == nil {
		return ""
	}
	var b strings.Builder
	if g.Elsewhere {
		b.WriteString("<p class=\"warn\">" + escaped(g.Verdict) + ".</p>\n")
	}
	grown, most := uint64(0), g.Bytes
	change := "it did not grow"
	if g.End > g.Start {
		grown = g.End - g.Start
		change = "it grew by " + figure.Bytes(grown)
	}
	most = max(most, grown, 1)
	bar := func(class, title, text string, n uint64) {
		fmt.Fprintf(&b, "<tr><th scope=\"row\">%s</th><td class=\"graph\"><div class=\"track\"><i class=\"%s\" style=\"width:%.1f%%\"></i></div></td><td>%s</td></tr>\n",
			title, class, 100*float64(n)/float64(most), svg.Escape(text))
	}
	b.WriteString("<table class=\"bars growth\"><caption hidden>Growth of memory</caption>\n")
	bar("rss", "RSS", fmt.Sprintf("%s at the start, %s at the end: %s", figure.Bytes(g.Start), figure.Bytes(g.End), change), grown)
	text := fmt.Sprintf("%s allocated in the recording and still live, in %s", figure.Bytes(g.Bytes), plural(g.Blocks, "block"))
	if g.UnknownBlocks > 0 {
		text += fmt.Sprintf("; %s more may be live or freed", figure.Bytes(g.UnknownBytes))
	}
	bar("live", "Heap", text, g.Bytes)
	b.WriteString("</table>\n")
	return b.String()
}

// steadyTable returns the call sites that are no suspects, folded away.
func steadyTable(v *Verdicts) string {
	if len(v.Steady) == 0 {
		return ""
	}
	what := "Other call sites with live blocks"
	if len(v.Suspects) == 0 {
		what = "Call sites with live blocks"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<details class=\"steady\"><summary>%s: %s</summary>\n<div class=\"wide\"><table>\n"+
		"<thead><tr><th class=\"number\">Live</th><th class=\"number\">Blocks</th><th>Verdict</th><th>Call site</th></tr></thead>\n<tbody>\n", what, figure.Count(uint64(len(v.Steady)+v.More)))
	for i := range v.Steady {
		s := &v.Steady[i]
		fmt.Fprintf(&b, "<tr><td class=\"number\">%s</td><td class=\"number\">%s</td><td>%s</td><td class=\"name\">%s</td></tr>\n",
			figure.Bytes(s.Trend.Live.Bytes), figure.Count(s.Trend.Live.Blocks), svg.Escape(verdictOr(&s.Trend)), siteName(s))
	}
	b.WriteString("</tbody></table></div>\n")
	if v.More > 0 {
		b.WriteString("<p class=\"muted\">" + plural(uint64(v.More), "more call site") + " with fewer live bytes.</p>\n")
	}
	b.WriteString("</details>\n")
	return b.String()
}

// verdictOr returns a verdict, or why there is none.
func verdictOr(t *trend.Trend) string {
	if text := verdict.Text(t); text != "" {
		return text
	}
	return "too few blocks or too short a time for a verdict"
}

// amountText returns the live blocks of a site.
func amountText(s *Site) string {
	text := plural(s.Trend.Live.Blocks, "block")
	if s.Trend.Live.Bytes > 0 {
		text = figure.Bytes(s.Trend.Live.Bytes) + " in " + text
	}
	return text
}

// sentence makes a sentence of a text that begins with a small letter.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// escaped returns a name of the target for a page.
func escaped(name string) string { return svg.Escape(shorten(sites.Printable(name))) }
