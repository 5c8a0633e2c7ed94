package plan

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site/cover"
)

// writePaths prints the sites inside functions, and why functions have none.
func writePaths(w io.Writer, all []Function, m *process.Machine) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	heading := "\nSITE INSIDE\tFILE\tADDRESS\tINSTRUCTION\tROLE\tSIZE\tBLOCK\n"
	for i := range all {
		f := &all[i]
		for j := range f.paths.sites {
			s := &f.paths.sites[j]
			fmt.Fprintf(table, "%s%s\t%s\t%#x\t%s\t%s\t%s\t%s\n", heading, f.Name, filepath.Base(s.probe.Path), s.Addr, s.Insn,
				s.roleText(), sizeText(f, &s.Site, m), blockText(&s.Site, m))
			heading = ""
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	separator := "\n"
	for i := range all {
		if f := &all[i]; f.paths.why != nil {
			fmt.Fprintf(w, "%s%s of %s keeps entry and return: %v\n", separator, f.Name, filepath.Base(f.Probe.Path), f.paths.why)
			separator = ""
		}
	}
	return nil
}

// roleText returns what a hit of the site means.
func (s *pathSite) roleText() string {
	if s.notes {
		return s.Role.String() + ", " + cover.Note.String()
	}
	return s.Role.String()
}

// sizeText returns where the size is at a site; "" if it is not known there.
func sizeText(f *Function, s *cover.Site, m *process.Machine) string {
	for i, arg := range f.arguments() {
		if arg == f.row.size && i < len(s.Args) {
			return placeText(s.Args[i], m)
		}
	}
	return ""
}

// blockText returns where the block is at a site; "" if it is not known there.
func blockText(s *cover.Site, m *process.Machine) string {
	if s.Role != cover.Report && s.Role != cover.Finish {
		return ""
	}
	return placeText(s.Block, m)
}

func placeText(p cover.Place, m *process.Machine) string {
	switch {
	case p.Stack:
		return fmt.Sprintf("stack+%d", p.Offset)
	case p.Product:
		return m.Place(p.Reg) + " (product)"
	}
	return m.Place(p.Reg)
}
