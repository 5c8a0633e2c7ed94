// Package heapview draws a heapmap.Map, either as an SVG picture of one moment,
// or as an interactive page that covers the whole trace and address space.
package heapview

import (
	"strconv"

	"rtrace-bpf/internal/analysis/heapmap"
	"rtrace-bpf/internal/report/theme"
)

// The colours of the states of memory.
var (
	unknown  = theme.Colour{Name: "unknown", Light: "#c3d3e8", Dark: "#22304a"}
	heap     = theme.Colour{Name: "heap", Light: "#ffffff", Dark: "#0b0d10"}
	internal = theme.Colour{Name: "internal", Light: "#c8452f", Dark: "#b9503e"}
	freed    = theme.Colour{Name: "freed", Light: "#f1dfb8", Dark: "#544726"}
	used     = theme.Colour{Name: "used", Light: "#1a5fb4", Dark: "#7fb2f0"}
)

// colours returns all colours in the order of heapmap.Cell. used1 to used8
// range from freed to used.
func colours() []theme.Colour {
	all := []theme.Colour{unknown, heap, internal, freed}
	for i := range heapmap.Full - heapmap.Used + 1 {
		part := 0.3 + 0.7*float64(i+1)/8
		all = append(all, theme.Mix("used"+strconv.Itoa(int(i)+1), freed, used, part))
	}
	return all
}

// class returns the colour name of a state.
func class(c heapmap.Cell) string {
	switch c {
	case heapmap.Unknown:
		return unknown.Name
	case heapmap.Heap:
		return heap.Name
	case heapmap.Internal:
		return internal.Name
	case heapmap.Freed:
		return freed.Name
	}
	return "used" + strconv.Itoa(int(c-heapmap.Used)+1)
}
