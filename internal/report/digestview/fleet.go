package digestview

import (
	_ "embed" // the parts of the page
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/html"
)

// Fleet holds the sums of several traces.
type Fleet struct {
	Title    string // how many traces there are
	Of       string // of how many hosts and services
	Verdict  string // a sentence about growth; may be empty
	Notes    []string
	Warnings []string // notes about traces that are missing, incomplete or doubtful
	Resource string
	Parts    []FleetPart
	Sites    []FleetSite // the most important first
	Stacks   []FleetStack
	Traces   []FleetTrace
}

// FleetPart is the traces of one service on one host. The page can show each part alone.
type FleetPart struct {
	Host, Service string
	Traces        int // those that count
	Growing       int // those in which a call site grows
}

// FleetSite is a call site of the fleet.
type FleetSite struct {
	Name string
	In   []FleetShare
}

// FleetShare is what a call site has in a part.
type FleetShare struct {
	Part          int // index in Fleet.Parts
	Traces        int
	Growing       int     // traces in which it grows
	Blocks, Bytes float64 // growth per second in these, added up
	digest.Use
}

// FleetStack is what a stack has in a part. Its AtPeak is that at the peak of each trace.
type FleetStack struct {
	Frames []sites.Frame // the innermost first
	Part   int           // index in Fleet.Parts
	Site   int           // index in Fleet.Sites
	digest.Use
}

// FleetTrace is a trace of the fleet.
type FleetTrace struct {
	File, Host, Service string
	Part                int // index in Fleet.Parts, or -1 if the trace does not count
	Calls               uint64
	Growing             int // call sites that grow
	digest.Use
	State string // what is wrong with it, in a word; empty if nothing is known to be
	Notes []string
}

var (
	//go:embed fleet.html
	fleetBody string
	//go:embed page_fleet.js
	scriptFleet string
)

// WriteFleet writes a self-contained page about the sums of several traces. It has the size limits of
// WriteHTML.
func WriteFleet(w io.Writer, f *Fleet) error {
	var notes []note
	for _, text := range f.Warnings {
		notes = append(notes, note{warn: true, text: text})
	}
	for _, text := range f.Notes {
		notes = append(notes, note{text: text})
	}
	verdict := ""
	if f.Verdict != "" {
		verdict = "<section class=\"verdict\" aria-label=\"Verdict\"><p class=\"words\">" + escaped(f.Verdict) + "</p></section>\n"
	}
	p := html.Page{
		Title: shorten(sites.Printable(f.Title)), Colours: colours(), Style: style,
		Body:   strings.NewReplacer("{{title}}", escaped(f.Title), "{{of}}", escaped(f.Of), "{{verdict}}", verdict, "{{notes}}", noteList("What is added up, and what is missing", notes)).Replace(fleetBody),
		Data:   []html.Data{{ID: "data", Value: buildFleet(f)}},
		Script: scriptData + scriptFlame + scriptTable + scriptFleet,
	}
	return p.Write(w)
}
