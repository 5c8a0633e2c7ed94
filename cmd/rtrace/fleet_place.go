package main

import (
	"fmt"
	"strings"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/printable"
)

// place is what groups of several traces have in common that are the same place.
type place struct {
	texts    []string
	identity groupIdentity
	build    string // build ID of the file, if the function of the first frame is not known
}

// placeKey returns a text that is equal for groups of the same place: their frames in words, as
// in the column site of tables, and the build ID of a file whose functions are not known.
func (g *groupFlags) placeKey(of *sites.Group) string {
	if g.key == sites.BySize {
		return number(of.Size)
	}
	var key strings.Builder
	for i := range of.Frames {
		f := &of.Frames[i]
		fmt.Fprintf(&key, "%s\n%s\n", f, g.buildOf(f))
	}
	return key.String()
}

// buildOf returns the build ID of the file of a frame without a function, or an empty string.
func (g *groupFlags) buildOf(f *sites.Frame) string {
	if f.Function != "" || f.File != "" {
		return ""
	}
	return g.builds[f.Position]
}

// place returns the place of a group. It keeps no reference to the trace.
func (g *groupFlags) place(x *groupTexts, of *sites.Group) (p place) {
	p.texts, p.identity = x.texts(of), x.identity(of)
	for i := range of.Frames {
		if of.Frames[i].Position != "" {
			p.identity.Frames[i].Address = "" // it differs from trace to trace
		}
	}
	if len(of.Frames) > 0 {
		if p.build = g.buildOf(&of.Frames[0]); p.build != "" {
			p.texts[0] += " (build " + printable.Name(p.build[:min(8, len(p.build))]) + ")"
		}
	}
	return p
}
