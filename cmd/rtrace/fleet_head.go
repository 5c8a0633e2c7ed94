package main

import (
	"fmt"
	"strings"

	"rtrace-bpf/internal/analysis/fleet"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/report/table"
)

// mostNotes is how many lines about traces are printed without --all.
const mostNotes = 10

// head returns the first lines of a report: how many traces there are, and total; then which
// traces are missing or doubtful, and why. all prints all of these.
func (f *fleetReader) head(total []string, all bool) string {
	lines := append([]string{f.counts()}, total...)
	notes := f.notes()
	more := 0
	if !all && len(notes) > mostNotes {
		more = len(notes) - mostNotes
		notes = notes[:mostNotes]
	}
	for _, text := range notes {
		lines = append(lines, printable.Name(text))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("careful: %s about traces; --json lists all", plural(uint64(more), "more line")))
	}
	return strings.Join(lines, "\n") + "\n"
}

// counts returns the line with the numbers of traces, hosts and services.
func (f *fleetReader) counts() string {
	of := f.read.Count()
	host, service := f.read.Knows()
	parts := []string{"traces: " + number(uint64(of.Traces))}
	for _, x := range []struct {
		title string
		n     int
		known bool
	}{{"hosts", of.Hosts, host}, {"services", of.Services, service}} {
		n := "not known"
		if x.known {
			n = number(uint64(x.n))
		}
		parts = append(parts, x.title+": "+n)
	}
	line := strings.Join(parts, ", ")
	if out, _ := f.left(); out > 0 {
		line += "; " + plural(uint64(out), "other trace") + " could not be read"
	}
	return line
}

// notes returns lines about traces: first those that are not included, then those that are
// incomplete, then doubts about the others.
func (f *fleetReader) notes() []string {
	var out, cut, doubts []string
	for _, t := range f.traces {
		switch {
		case !t.included():
			out = append(out, "not included: "+t.text(t.err.Error()))
		case t.err != nil:
			cut = append(cut, "careful: "+t.text(t.err.Error()))
		}
		for _, text := range t.notes {
			doubts = append(doubts, "careful: "+t.text(text))
		}
	}
	return append(append(out, cut...), doubts...)
}

// fleetObject is about the traces of a report, in JSON.
type fleetObject struct {
	fleet.Count                    // those that are included
	Per         string             `json:"per,omitempty"`
	Members     []fleetTraceObject `json:"members"` // all that were named
}

type fleetTraceObject struct {
	File     string   `json:"file"`
	Host     string   `json:"host,omitempty"`
	Service  string   `json:"service,omitempty"`
	Included bool     `json:"included"`
	Complete bool     `json:"complete"`
	Error    string   `json:"error,omitempty"` // why it is not included, or incomplete
	Notes    []string `json:"notes,omitempty"` // what may be wrong with its figures
}

func (f *fleetReader) object() fleetObject {
	x := fleetObject{Count: f.read.Count(), Per: f.flags.per, Members: []fleetTraceObject{}}
	for _, t := range f.traces {
		m := fleetTraceObject{File: t.File, Host: t.Host, Service: t.Service, Included: t.included(), Complete: t.err == nil, Notes: t.notes}
		if t.err != nil {
			m.Error = t.err.Error()
		}
		x.Members = append(x.Members, m)
	}
	return x
}

// rowObject is what a row of several traces has in JSON, in addition to its figures.
type rowObject struct {
	Trace   string `json:"trace,omitempty"`   // with --per trace
	Host    string `json:"host,omitempty"`    // with --per host
	Service string `json:"service,omitempty"` // with --per service
	fleet.Count
	BuildID string `json:"build_id,omitempty"` // of the file, if the function is not known
	groupIdentity
}

func (f *fleetReader) row(of string, in *fleet.Set, p *place) rowObject {
	x := rowObject{Count: in.Count(), BuildID: p.build, groupIdentity: p.identity}
	switch fleet.Per(f.flags.per) {
	case fleet.PerTrace:
		x.Trace = of
	case fleet.PerHost:
		x.Host = of
	case fleet.PerService:
		x.Service = of
	}
	return x
}

// columns returns the columns about traces: how many have a row, or which one.
func (f *fleetReader) columns() []table.Column {
	if f.flags.per != "" {
		return []table.Column{{Title: f.flags.per, Left: true}}
	}
	columns := []table.Column{{Title: "traces"}}
	of := f.read.Count()
	if of.Hosts > 1 {
		columns = append(columns, table.Column{Title: "hosts"})
	}
	if of.Services > 1 {
		columns = append(columns, table.Column{Title: "services"})
	}
	return columns
}

// cells returns the cells of columns for a row.
func (f *fleetReader) cells(of string, in *fleet.Set) (cells []string) {
	if f.flags.per != "" {
		return []string{printable.Name(of)}
	}
	n := in.Count()
	for _, c := range f.columns() {
		cells = append(cells, number(uint64(map[string]int{"traces": n.Traces, "hosts": n.Hosts, "services": n.Services}[c.Title])))
	}
	return cells
}
